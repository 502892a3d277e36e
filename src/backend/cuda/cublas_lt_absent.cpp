// cuBLASLt in a program whose toolkit had no header of it: none, and it says so.
#include "backend/cuda/cublas_lt.h"
#include "detrun/error.h"

namespace detrun {

std::unique_ptr<CublasLt> open_cublas_lt() {
  throw_usage("profile cublas: this program was built without the header of cuBLASLt",
              "build it with a CUDA toolkit that has cublasLt.h, or use --numerics portable");
}

}  // namespace detrun
