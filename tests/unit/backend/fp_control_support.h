// Plays the foreign shared object that changes the floating-point control of the thread: MXCSR on
// x86-64, FPCR on AArch64. Elsewhere DETRUN_KNOWN_FP_CONTROL is not defined.
#pragma once

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#define DETRUN_KNOWN_FP_CONTROL 1

namespace support {

constexpr unsigned kContractControl = 0x1f80;
/// Flush and zero inputs; either alone; toward zero; downward.
constexpr std::array kForeignControls = {0x9fc0u, 0x9f80u, 0x1fc0u, 0x7f80u, 0x3f80u};
constexpr bool flushes_results(unsigned control) { return (control & 0x8000u) != 0; }

/// The register without its sticky flags.
inline unsigned fp_control() { return _mm_getcsr() & ~0x3fu; }
inline void set_fp_control(unsigned control) { _mm_setcsr(control); }

}  // namespace support

#elif defined(__aarch64__)
#define DETRUN_KNOWN_FP_CONTROL 1

namespace support {

constexpr unsigned kContractControl = 0;
/// Flush and toward zero; flush alone; upward; downward; default NaN; the other binary16 format.
constexpr std::array kForeignControls = {0x01c00000u, 0x01000000u, 0x00400000u,
                                         0x00800000u, 0x02000000u, 0x04000000u};
constexpr bool flushes_results(unsigned control) { return (control & 0x01000000u) != 0; }

inline unsigned fp_control() {
  unsigned long value;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(value));
  return static_cast<unsigned>(value);
}
inline void set_fp_control(unsigned control) {
  const unsigned long value = control;
  __asm__ __volatile__("msr fpcr, %0" : : "r"(value) : "memory");
}

}  // namespace support
#endif

#if defined(DETRUN_KNOWN_FP_CONTROL)
namespace support {

class ForeignFpControl {
 public:
  explicit ForeignFpControl(unsigned value) : before_(fp_control()) { set_fp_control(value); }
  ~ForeignFpControl() { set_fp_control(before_); }
  ForeignFpControl(const ForeignFpControl&) = delete;
  ForeignFpControl& operator=(const ForeignFpControl&) = delete;

 private:
  unsigned before_;
};

}  // namespace support
#endif
