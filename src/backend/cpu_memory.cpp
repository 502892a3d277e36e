// Small blocks come from the heap, where sanitizers watch their ends; large ones are mapped.
#include "backend/cpu_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "detrun/error.h"

namespace detrun {
namespace {

constexpr std::uint64_t kAlignment = 64;
// From here on pages that nobody writes to cost more than a mapping of their own.
constexpr std::uint64_t kMappedFrom = std::uint64_t{128} << 10;
constexpr std::uint64_t kHugeFrom = std::uint64_t{2} << 20;

bool is_mapped(std::uint64_t n_bytes) { return n_bytes >= kMappedFrom; }

void* map_zeroed(std::uint64_t n_bytes) {
  void* p = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // Fewer page walks while weights stream; only a wish.
  if (n_bytes >= kHugeFrom) madvise(p, n_bytes, MADV_HUGEPAGE);
  return p;
}

void* allocate_zeroed(std::uint64_t n_bytes) {
  void* p = std::aligned_alloc(kAlignment, (n_bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (p != nullptr) std::memset(p, 0, n_bytes);
  return p;
}

}  // namespace

std::uint64_t physical_memory_bytes() {
  constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 47U;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return kAddressSpace;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

CpuMemory::CpuMemory(std::uint64_t n_bytes, std::string_view what) : n_bytes_(n_bytes) {
  if (n_bytes == 0) return;
  if (n_bytes <= std::numeric_limits<std::size_t>::max() / 2) {
    data_ = static_cast<std::byte*>(is_mapped(n_bytes) ? map_zeroed(n_bytes)
                                                       : allocate_zeroed(n_bytes));
  }
  if (data_ == nullptr) {
    throw_internal("out of memory: " + std::string(what) + " needs " + std::to_string(n_bytes) +
                   " bytes");
  }
}

CpuMemory::~CpuMemory() {
  if (data_ == nullptr) return;
  if (is_mapped(n_bytes_)) {
    munmap(data_, n_bytes_);
  } else {
    std::free(data_);
  }
}

CpuMemory::CpuMemory(CpuMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

CpuMemory& CpuMemory::operator=(CpuMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(n_bytes_, other.n_bytes_);
  return *this;
}

}  // namespace detrun
