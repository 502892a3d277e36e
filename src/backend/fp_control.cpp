// The floating-point control register of one thread: MXCSR on x86-64, FPCR on AArch64.
// A shared object built with -ffast-math switches subnormals off in every thread that loads it or
// is started later, so nothing may be assumed: every thread that computes sets its own register.
#include "detrun/backend.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace detrun {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t kContract = 0x1f80;     // exceptions masked, nearest even, no FTZ, no DAZ
constexpr std::uint64_t kStatusFlags = 0x003f;  // sticky results of earlier operations
std::uint64_t read_control() { return _mm_getcsr(); }
void write_control(std::uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kContract = 0;  // nearest even, no flush to zero, NaNs propagate
constexpr std::uint64_t kStatusFlags = 0;
std::uint64_t read_control() {
  std::uint64_t value;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(value));
  return value;
}
void write_control(std::uint64_t value) {
  __asm__ __volatile__("msr fpcr, %0" : : "r"(value) : "memory");
}
#else
constexpr std::uint64_t kContract = FE_TONEAREST;
constexpr std::uint64_t kStatusFlags = 0;
std::uint64_t read_control() { return static_cast<std::uint64_t>(std::fegetround()); }
void write_control(std::uint64_t value) { std::fesetround(static_cast<int>(value)); }
#endif

}  // namespace

// Writing the register drains the pipeline, and nearly always it is right already.
FpControlScope::FpControlScope() : saved_(read_control()) {
  if ((saved_ & ~kStatusFlags) != kContract) write_control(kContract);
}
FpControlScope::~FpControlScope() {
  if ((saved_ & ~kStatusFlags) != kContract) write_control(saved_);
}
std::uint32_t FpControlScope::found() const {
  return static_cast<std::uint32_t>(saved_ & ~kStatusFlags);
}

}  // namespace detrun
