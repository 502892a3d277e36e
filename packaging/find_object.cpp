// _dl_find_object for a C library that has none. libgcc's unwinder, linked statically here, calls
// it (glibc has it since 2.35), and the program has to run on glibc 2.34. The same answer from what
// older versions have: the object that holds an address and its .eh_frame_hdr.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* result;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const ElfW(Phdr)* segment = nullptr;
  const ElfW(Phdr)* frames = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && search->address >= start &&
        search->address < start + header.p_memsz) {
      segment = &header;
    }
    if (header.p_type == PT_GNU_EH_FRAME) frames = &header;
  }
  if (segment == nullptr || frames == nullptr) return 0;
  const std::uintptr_t start = info->dlpi_addr + segment->p_vaddr;
  search->result->dlfo_map_start = reinterpret_cast<void*>(start);
  search->result->dlfo_map_end = reinterpret_cast<void*>(start + segment->p_memsz);
  search->result->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

#endif
