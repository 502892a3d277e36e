// The emulated cuBLASLt of test programs, which is linked in: it can be missing all the same.
#include "backend/cuda/cublas_lt_calls.h"
#include "detrun/error.h"

namespace detrun {

CublasLtCalls load_cublas_lt() {
  if (emulation::cublas_lt().missing) {
    throw_usage("profile cublas needs cuBLASLt: the emulated one is missing",
                "use --numerics portable");
  }
  CublasLtCalls calls;
#define DETRUN_TAKE(member, symbol) calls.member = &::symbol;
  DETRUN_CUBLAS_LT_CALLS(DETRUN_TAKE)
#undef DETRUN_TAKE
  return calls;
}

}  // namespace detrun
