// Mapped ELF objects: build ids out of their note segments, whole-file digests on demand.
// What was mapped may since have been replaced on disk: the build id is of the mapping, the digest
// of the file that has the name now; the program itself is read through /proc/self/exe and is
// exact.
#include "host/objects.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/host.h"
#include "host/system.h"

namespace detrun {
namespace {

std::size_t padded(std::size_t size, std::size_t align) {
  return (size + align - 1) / align * align;
}

/// Walks the notes of one PT_NOTE segment. Every length is compared with what is left.
std::string build_id_of_notes(std::span<const std::byte> notes, std::size_t align) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes = notes.subspan(sizeof(header));
    const std::size_t name_bytes = padded(header.n_namesz, align);
    if (name_bytes > notes.size()) return {};
    const std::span<const std::byte> name = notes.first(header.n_namesz);
    notes = notes.subspan(name_bytes);
    if (header.n_descsz > notes.size()) return {};
    const std::span<const std::byte> desc = notes.first(header.n_descsz);
    if (header.n_type == NT_GNU_BUILD_ID && name.size() == 4 &&
        std::memcmp(name.data(), ELF_NOTE_GNU, 4) == 0) {
      return to_hex(desc);
    }
    const std::size_t desc_bytes = padded(header.n_descsz, align);
    if (desc_bytes > notes.size()) return {};
    notes = notes.subspan(desc_bytes);
  }
  return {};
}

std::string build_id_of(const dl_phdr_info& info) {
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* start = reinterpret_cast<const std::byte*>(info.dlpi_addr + segment.p_vaddr);
    std::string id = build_id_of_notes({start, static_cast<std::size_t>(segment.p_memsz)},
                                       segment.p_align == 8 ? 8 : 4);
    if (!id.empty()) return id;
  }
  return {};
}

int collect_object(dl_phdr_info* info, std::size_t /*size*/, void* out) {
  auto& objects = *static_cast<std::vector<LoadedObject>*>(out);
  objects.push_back({info->dlpi_name == nullptr ? "" : info->dlpi_name, build_id_of(*info)});
  return 0;
}

std::string digest_or_reason(const std::string& path) {
  try {
    return to_hex(sha256_file(path));
  } catch (const Error& error) {
    return "unreadable: " + ascii_only(error.what());
  }
}

}  // namespace

std::vector<LoadedObject> loaded_objects() {
  std::vector<LoadedObject> objects;
  dl_iterate_phdr(collect_object, &objects);
  return objects;
}

std::string program_path() {
  std::array<char, 4096> buffer;
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size());
  return n <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(n));
}

Json digest_loaded_objects() {
  Json result = Json::object();
  for (const LoadedObject& object : loaded_objects()) {
    // The program is read through its own link; the kernel's vdso has no file.
    if (object.path.empty()) {
      result.set(ascii_only(program_path()), digest_or_reason("/proc/self/exe"));
    } else if (object.path.find('/') != std::string::npos) {
      result.set(ascii_only(object.path), digest_or_reason(object.path));
    }
  }
  return result;
}

std::string program_sha256() {
  try {
    return to_hex(sha256_file("/proc/self/exe"));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace detrun
