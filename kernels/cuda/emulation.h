// Runs kernels on the CPU, one fiber a thread, blocks one after another. For tests, with g++ alone.
// It checks index logic, the order of arithmetic, collectives and shared memory; it cannot check
// ptxas, the memory model, occupancy or speed. Reported as failures of the launch: a collective
// that not all lanes of a warp reach, a barrier that not all threads reach, an index outside a
// shared array, a read of shared memory that nobody wrote, a read of another thread's write before
// a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/contract.h"
#include "kernels/fp.h"

#define DETRUN_KERNEL static
#define DETRUN_DEVICE [[maybe_unused]] static inline
#define DETRUN_SHARED(type, name, count) \
  ::detrun::emulation::SharedArray<type> name(__LINE__, count)

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

unsigned thread_index_x();
unsigned block_index_x();
unsigned block_index_y();
void barrier();
/// All lanes of the warp give a word and get lane (own ^ mask)'s. `kind` tells collectives apart.
std::uint32_t exchange_xor(std::uint32_t value, int mask, int kind);
/// Ends the launch with this problem; does not return.
[[noreturn]] void fail(const char* what);

/// Bytes of a shared array and who wrote each element when: found by the line that declares it.
struct SharedStorage {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> writer;   // thread + 1; 0: nobody
  std::vector<std::uint32_t> written;  // number of barriers passed at the write
};
SharedStorage& shared_storage(int line, std::size_t count, std::size_t element_bytes);
std::uint32_t barriers_passed();
std::uint32_t current_thread();

template <class T>
class SharedArray {
 public:
  SharedArray(int line, std::size_t count)
      : storage_(shared_storage(line, count, sizeof(T))), count_(count) {}

  class Reference {
   public:
    Reference(SharedStorage& storage, std::size_t index) : storage_(storage), index_(index) {}
    operator T() const {
      const std::uint32_t writer = storage_.writer[index_];
      if (writer == 0) fail("read of uninitialised shared memory");
      if (writer != current_thread() + 1 && storage_.written[index_] == barriers_passed())
        fail("read of another thread's shared write without a barrier between");
      T value;
      std::memcpy(&value, storage_.bytes.data() + index_ * sizeof(T), sizeof(T));
      return value;
    }
    Reference& operator=(T value) {
      std::memcpy(storage_.bytes.data() + index_ * sizeof(T), &value, sizeof(T));
      storage_.writer[index_] = current_thread() + 1;
      storage_.written[index_] = barriers_passed();
      return *this;
    }
    Reference& operator=(const Reference& other) { return *this = static_cast<T>(other); }

   private:
    SharedStorage& storage_;
    std::size_t index_;
  };

  Reference operator[](std::size_t index) {
    if (index >= count_) fail("index outside a shared array");
    return Reference(storage_, index);
  }

 private:
  SharedStorage& storage_;
  std::size_t count_;
};

}  // namespace detrun::emulation

namespace detrun::device {

DETRUN_DEVICE float int_to_float(int value) { return static_cast<float>(value); }
DETRUN_DEVICE float half_to_float(std::uint16_t half) { return kernels::f16_to_f32(half); }
DETRUN_DEVICE int dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<std::int8_t>(a >> (8 * i)) * static_cast<std::int8_t>(b >> (8 * i));
  }
  return c;
}
DETRUN_DEVICE float shuffle_xor(float value, int mask) {
  return kernels::f32_from_bits(emulation::exchange_xor(kernels::f32_bits(value), mask, 1));
}
DETRUN_DEVICE int shuffle_xor(int value, int mask) {
  return static_cast<int>(emulation::exchange_xor(static_cast<std::uint32_t>(value), mask, 2));
}
DETRUN_DEVICE void sync_block() { emulation::barrier(); }
DETRUN_DEVICE unsigned thread_x() { return emulation::thread_index_x(); }
DETRUN_DEVICE unsigned block_x() { return emulation::block_index_x(); }
DETRUN_DEVICE unsigned block_y() { return emulation::block_index_y(); }

struct Int4 {
  int x, y, z, w;
};
DETRUN_DEVICE Int4 load_int4(const void* source) {
  if (reinterpret_cast<std::uintptr_t>(source) % 16 != 0)
    emulation::fail("misaligned 16-byte load");
  Int4 value;
  std::memcpy(&value, source, sizeof(value));
  return value;
}

}  // namespace detrun::device
