// Plays the foreign shared object that changes the floating-point control of the thread.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

namespace support {

class ForeignFpControl {
 public:
  explicit ForeignFpControl(unsigned value) : before_(_mm_getcsr()) { _mm_setcsr(value); }
  ~ForeignFpControl() { _mm_setcsr(before_); }
  ForeignFpControl(const ForeignFpControl&) = delete;
  ForeignFpControl& operator=(const ForeignFpControl&) = delete;

 private:
  unsigned before_;
};

}  // namespace support
#endif
