// NVIDIA's cuBLASLt, opened while the program runs: machines without it run everything else. Only
// the major version of the header is asked for, whose interface it is.
#include <array>
#include <string>

#include "backend/cuda/cublas_lt_calls.h"
#include "detrun/error.h"

namespace detrun {
namespace {

#define DETRUN_TEXT_OF(number) #number
#define DETRUN_TEXT(number) DETRUN_TEXT_OF(number)
#define DETRUN_LIBRARY "libcublasLt.so." DETRUN_TEXT(CUBLAS_VER_MAJOR)
// Where the loader looks, then where NVIDIA's installer puts it without telling the loader.
constexpr std::array kNames = {DETRUN_LIBRARY, "/usr/local/cuda/lib64/" DETRUN_LIBRARY};

constexpr const char* kHint = "install cuBLAS of CUDA " DETRUN_TEXT(
    CUBLAS_VER_MAJOR) " (" DETRUN_LIBRARY
                      "), name its folder in LD_LIBRARY_PATH, or use --numerics portable";

}  // namespace

CublasLtCalls load_cublas_lt() {
  CublasLtCalls calls;
  std::string why;
  calls.opened = SharedLibrary::open(kNames, why);
  if (!calls.opened) throw_usage("profile cublas needs cuBLASLt: " + why, kHint);
  const auto find = [&](const char* symbol, auto& function) {
    if (calls.opened->find(symbol, function)) return;
    throw_usage("profile cublas needs cuBLASLt: " + calls.opened->name() + " lacks " + symbol,
                kHint);
  };
#define DETRUN_FIND(member, symbol) find(#symbol, calls.member);
  DETRUN_CUBLAS_LT_CALLS(DETRUN_FIND)
#undef DETRUN_FIND
  return calls;
}

}  // namespace detrun
