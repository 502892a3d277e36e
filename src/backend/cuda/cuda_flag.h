// The flag that kernels raise where the contract calls a value an error. A device runs behind its
// caller, so a raised flag is found later and names no operator; with placing on, every row is
// launched alone and asked about, and its operator throws its own Error. The flag comes to the host
// by a copy that whoever waits for the stream anyway waits for as well.
#pragma once

#include <cstdint>

#include "backend/cuda/cuda_handles.h"

namespace detrun {

class CudaFlag {
 public:
  /// The stream outlives the object.
  explicit CudaFlag(const CudaStream& stream);
  int* get() const { return memory_.as<int>(); }
  /// wait() waits for all work queued before. Error kInternal when a kernel raised the flag, which
  /// is lowered again.
  template <class Wait>
  void check(Wait&& wait) {
    fetch();
    wait();
    complain_if(take_fetched());
  }
  void check() {
    check([this] { stream_.synchronize(); });
  }
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
      fetch();
      stream_.synchronize();
      if (take_fetched()) fail(row);
    }
  }

 private:
  void fetch();         ///< queues its way to the host
  bool take_fetched();  ///< after a wait: whether it was raised; then it is lowered
  void complain_if(bool raised);
  void lower();

  const CudaStream& stream_;
  DeviceMemory memory_{sizeof(int), "a flag"};
  PinnedMemory fetched_{sizeof(int)};
  bool placing_ = false, was_raised_ = false;
};

}  // namespace detrun
