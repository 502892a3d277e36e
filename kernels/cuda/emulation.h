// Runs kernels on the CPU, one fiber a thread, blocks one after another. For tests, with g++ alone.
// It checks index logic, the order of arithmetic, collectives and shared memory; it cannot check
// ptxas, the memory model, occupancy or speed. Reported as failures of the launch: a collective
// that not all lanes of a warp reach together, a barrier that not all threads reach together, an
// index outside a shared array, a read of shared memory that nobody wrote, and two threads at one
// shared element, one of them writing, without a barrier between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/contract.h"
#include "kernels/fp.h"

#define DETRUN_KERNEL [[maybe_unused]] static
#define DETRUN_KERNEL_OF(threads) [[maybe_unused]] static
#define DETRUN_DEVICE [[maybe_unused]] static inline
#define DETRUN_UNROLL
#define DETRUN_NO_UNROLL
#define DETRUN_SHARED(type, name, count) \
  ::detrun::emulation::SharedArray<type> name(__FILE__, __LINE__, #name, count)

namespace detrun::emulation {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

enum class LaneOrder { kAscending, kDescending };

/// What went wrong in a launch; empty when nothing did.
using Problem = std::string;

/// Runs `body` once for every thread of every block. Threads of a block interleave at collectives
/// and barriers in the given order. Returns the first problem found, and stops there.
Problem launch(Dim grid, Dim block, LaneOrder order, const std::function<void()>& body);

// ---- what device.cuh needs, called from inside a kernel -----------------------------------------

Dim thread_index();
Dim block_index();
Dim block_size();
Dim grid_size();

enum class Collective : std::uint32_t {
  kFloat,
  kInt,
  kUnsigned,
  kNothing,
  kMmaM8n8k16,
  kMmaM16n8k16,
  kMmaM16n8k32
};
constexpr int kMaxWords = 6;

/// One warp's words of one collective, by lane.
struct Exchange {
  std::uint32_t words[32][kMaxWords];
  std::uint32_t round, arrived;
  Collective kind;
  int mask, line;
};

/// All lanes of the warp give `count` words each and get everybody's; valid until the next
/// collective of this lane. Kind, mask and line must be the same in all lanes.
const Exchange& exchange(const std::uint32_t* words, int count, Collective kind, int mask,
                         int line);
int lane();
void barrier(int line);
/// Ends the launch with this problem, about a shared array if `name` is given; does not return.
[[noreturn]] void fail(const char* what, const char* name = nullptr);

/// Who used an element of a shared array last, and after how many barriers of the block.
struct Access {
  std::uint32_t writer, written;  // thread + 1; 0: nobody
  std::uint32_t reader, read;     // thread + 1; kManyReaders: several since that barrier
};
constexpr std::uint32_t kManyReaders = 0xffffffffu;

struct SharedStorage {
  std::vector<std::byte> bytes;
  std::vector<Access> accesses;
  const char* name;
  std::uint64_t block;  // number of the block it was made for
};
/// The array that the declaration at this place means in this block.
SharedStorage& shared_storage(const char* file, int line, const char* name, std::size_t count,
                              std::size_t element_bytes);
/// Check an access of the running thread and note it.
void note_read(SharedStorage& storage, std::size_t index);
void note_write(SharedStorage& storage, std::size_t index);

template <class T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SharedArray(const char* file, int line, const char* name, std::size_t count)
      : storage_(shared_storage(file, line, name, count, sizeof(T))) {}

  class Reference {
   public:
    Reference(SharedStorage& storage, std::size_t index) : storage_(storage), index_(index) {}
    operator T() const {
      note_read(storage_, index_);
      T value;
      std::memcpy(&value, storage_.bytes.data() + index_ * sizeof(T), sizeof(T));
      return value;
    }
    Reference& operator=(T value) {
      note_write(storage_, index_);
      std::memcpy(storage_.bytes.data() + index_ * sizeof(T), &value, sizeof(T));
      return *this;
    }
    Reference& operator=(const Reference& other) { return *this = static_cast<T>(other); }

   private:
    SharedStorage& storage_;
    std::size_t index_;
  };

  Reference operator[](std::size_t index) {
    if (index >= storage_.accesses.size()) fail("index outside a shared array", storage_.name);
    return Reference(storage_, index);
  }

 private:
  SharedStorage& storage_;
};

}  // namespace detrun::emulation

namespace detrun::device {

DETRUN_DEVICE unsigned thread_x() { return emulation::thread_index().x; }
DETRUN_DEVICE unsigned thread_y() { return emulation::thread_index().y; }
DETRUN_DEVICE unsigned block_x() { return emulation::block_index().x; }
DETRUN_DEVICE unsigned block_y() { return emulation::block_index().y; }
DETRUN_DEVICE unsigned block_z() { return emulation::block_index().z; }
DETRUN_DEVICE unsigned block_dim_x() { return emulation::block_size().x; }
DETRUN_DEVICE unsigned block_dim_y() { return emulation::block_size().y; }
DETRUN_DEVICE unsigned grid_dim_x() { return emulation::grid_size().x; }
DETRUN_DEVICE unsigned grid_dim_y() { return emulation::grid_size().y; }

DETRUN_DEVICE float int_to_float(int value) { return static_cast<float>(value); }
// 1.5 * 2^23 pushes the fraction out of the significand, rounding to nearest even.
DETRUN_DEVICE int float_to_int(float value) {
  return static_cast<int>(kernels::f32_sub(kernels::f32_add(value, 12582912.0f), 12582912.0f));
}
DETRUN_DEVICE float half_to_float(std::uint16_t half) { return kernels::f16_to_f32(half); }
DETRUN_DEVICE std::uint16_t float_to_half(float value) { return kernels::f32_to_f16(value); }
DETRUN_DEVICE int dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<std::int8_t>(a >> (8 * i)) * static_cast<std::int8_t>(b >> (8 * i));
  }
  return c;
}
DETRUN_DEVICE unsigned pick_bytes(unsigned low, unsigned high, unsigned selector) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned number = selector >> (4 * i) & 15;
    if (number > 7) emulation::fail("a byte picked beyond the eighth");
    result |= ((number < 4 ? low : high) >> (8 * (number % 4)) & 0xffu) << (8 * i);
  }
  return result;
}

// The line of the caller tells collectives apart that lanes reach in different branches.
DETRUN_DEVICE float shuffle_xor(float value, int mask, int line = __builtin_LINE()) {
  const std::uint32_t word = kernels::f32_bits(value);
  const auto& all = emulation::exchange(&word, 1, emulation::Collective::kFloat, mask, line);
  return kernels::f32_from_bits(all.words[(emulation::lane() ^ mask) & 31][0]);
}
DETRUN_DEVICE int shuffle_xor(int value, int mask, int line = __builtin_LINE()) {
  const auto word = static_cast<std::uint32_t>(value);
  const auto& all = emulation::exchange(&word, 1, emulation::Collective::kInt, mask, line);
  return static_cast<int>(all.words[(emulation::lane() ^ mask) & 31][0]);
}
DETRUN_DEVICE unsigned shuffle_xor(unsigned value, int mask, int line = __builtin_LINE()) {
  const auto& all = emulation::exchange(&value, 1, emulation::Collective::kUnsigned, mask, line);
  return all.words[(emulation::lane() ^ mask) & 31][0];
}
DETRUN_DEVICE void sync_warp(int line = __builtin_LINE()) {
  const std::uint32_t nothing = 0;
  emulation::exchange(&nothing, 1, emulation::Collective::kNothing, 0, line);
}
DETRUN_DEVICE void sync_block(int line = __builtin_LINE()) { emulation::barrier(line); }

template <class T>
DETRUN_DEVICE T* device_memory(T* pointer) {
  return pointer;
}

struct alignas(8) Int2 {
  int x, y;
};
struct alignas(16) Int4 {
  int x, y, z, w;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};
template <class T>
DETRUN_DEVICE T load_aligned(const void* source, const char* complaint) {
  if (reinterpret_cast<std::uintptr_t>(source) % sizeof(T) != 0) emulation::fail(complaint);
  T value;
  std::memcpy(&value, source, sizeof(value));
  return value;
}
DETRUN_DEVICE int load_int(const void* source) {
  return load_aligned<int>(source, "misaligned 4-byte load");
}
DETRUN_DEVICE Int2 load_int2(const void* source) {
  return load_aligned<Int2>(source, "misaligned 8-byte load");
}
DETRUN_DEVICE Int4 load_int4(const void* source) {
  return load_aligned<Int4>(source, "misaligned 16-byte load");
}
DETRUN_DEVICE Float4 load_float4(const float* source) {
  return load_aligned<Float4>(source, "misaligned 16-byte load");
}

// The fragments are those that kernels/cuda/device.cuh describes for the device. A word
// is 4 elements; a lane gives one of A for each 8 rows and 16 summed elements, one of B for
// each 16.
template <int kRowGroups, int kHalves>
DETRUN_DEVICE void mma_s8_emulated(int* d, const int* a, const int* b, emulation::Collective kind,
                                   int line) {
  constexpr int kOfA = kRowGroups * kHalves;  // word `row group + kRowGroups * half`
  std::uint32_t own[kOfA + kHalves];
  for (int i = 0; i < kOfA; ++i) own[i] = static_cast<std::uint32_t>(a[i]);
  for (int i = 0; i < kHalves; ++i) own[kOfA + i] = static_cast<std::uint32_t>(b[i]);
  const auto& all = emulation::exchange(own, kOfA + kHalves, kind, 0, line);
  const int g = emulation::lane() / 4;
  const int t = emulation::lane() % 4;
  for (int i = 0; i < 2 * kRowGroups; ++i) {
    for (int half = 0; half < kHalves; ++half) {       // 16 of the summed elements
      for (int quarter = 0; quarter < 4; ++quarter) {  // 4 of them, a word
        const std::uint32_t* row = all.words[4 * g + quarter];
        const std::uint32_t* column = all.words[4 * (2 * t + i % 2) + quarter];
        d[i] = dp4a(static_cast<int>(row[i / 2 + kRowGroups * half]),
                    static_cast<int>(column[kOfA + half]), d[i]);
      }
    }
  }
}
DETRUN_DEVICE void mma_s8_m8n8k16(int* d, int a, int b, int line = __builtin_LINE()) {
  mma_s8_emulated<1, 1>(d, &a, &b, emulation::Collective::kMmaM8n8k16, line);
}
DETRUN_DEVICE void mma_s8_m16n8k16(int* d, const int* a, int b, int line = __builtin_LINE()) {
  mma_s8_emulated<2, 1>(d, a, &b, emulation::Collective::kMmaM16n8k16, line);
}
DETRUN_DEVICE void mma_s8_m16n8k32(int* d, const int* a, const int* b,
                                   int line = __builtin_LINE()) {
  mma_s8_emulated<2, 2>(d, a, b, emulation::Collective::kMmaM16n8k32, line);
}

}  // namespace detrun::device
