// The flag that kernels raise where the contract calls a value an error. A device runs behind its
// caller, so a raised flag is found later and names no operator; with placing on, every row is
// launched alone and asked about, and its operator throws its own Error.
#pragma once

#include <cstdint>

#include "backend/cuda/cuda_handles.h"
#include "backend/cuda/cuda_transfer.h"

namespace detrun {

class CudaFlag {
 public:
  /// Both outlive the object.
  CudaFlag(const CudaStream& stream, CudaTransfer& transfer);
  int* get() const { return memory_.as<int>(); }
  /// Waits for the stream. Error kInternal when a kernel raised the flag, which is lowered again.
  void check();
  /// check() threw, and nobody asked for the place since.
  bool was_raised() const { return was_raised_; }
  void set_placing(bool on);
  bool is_placing() const { return placing_; }

  /// launch(first, n) for all rows at once; while placing, for each alone, and fail(row), which
  /// throws, for the first that raises the flag.
  template <class Launch, class Fail>
  void launch_rows(std::uint32_t rows, Launch&& launch, Fail&& fail) {
    if (!placing_) {
      launch(0U, rows);
      return;
    }
    for (std::uint32_t row = 0; row < rows; ++row) {
      launch(row, 1U);
      if (take()) fail(row);
    }
  }

 private:
  bool take();
  void lower();

  const CudaStream& stream_;
  CudaTransfer& transfer_;
  DeviceMemory memory_{sizeof(int), "a flag"};
  bool placing_ = false, was_raised_ = false;
};

}  // namespace detrun
