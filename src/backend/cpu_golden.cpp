// The known answers of the self-test, made by the scalar reference: portable version 1.
// Generator: run_self_test on kernels::scalar::kOps, the inputs' seeds are in cpu_self_test.cpp.
// They change only with the contract's version (kPortableVersion) or with the inputs.
#include "backend/cpu_self_test.h"

namespace detrun {

const std::vector<KnownAnswer>& golden_answers() {
  static const std::vector<KnownAnswer> kAnswers = {
      {"vector F32", "0a88e7fa3c487638c5c17eaa331aa090"},
      {"matmul F32", "5c30c8fb2d9ec0f984d8b6defd324c08"},
      {"vector F16", "7f23b30b9e00b1d58041543a25e955d6"},
      {"matmul F16", "b82e5a42f258276c5e816dbbdac8bdfa"},
      {"vector BF16", "ba0aa449942a035817302e632cec486e"},
      {"matmul BF16", "d9241a0858a27001868c3bb23af52c1a"},
      {"vector Q8_0", "82b87a11b30cd1d296663e8d5d66125a"},
      {"matmul Q8_0", "3b18fcd8101284d901be3457fe837df8"},
      {"attention f16", "ca5623b72fc7cc66fbe199870d5d40df"},
      {"attention f32", "bf89f0b815e9cc1628df91369730ebbb"},
      {"rope adjacent", "fea24323bd34183042f53bfbf8695864"},
      {"rope halves", "4c9de0994938145eececd78b417346a4"},
      {"quantize", "a3cdc8aab5a95af2eef4090ea71b3050"},
      {"silu_mul", "e2f63bbc8224a0e1efd2d2e4e6196d45"},
      {"add", "845ae700a5316ed57d1376bb772caa28"},
      {"exp", "a64def2867cc58fc39ab2daaa398ae71"},
      {"rmsnorm", "d76d3798df310416cd4d5ea4cf4fc431"},
      {"kv_write", "f23307e0974357ddff54c953342acbb8"},
  };
  return kAnswers;
}

}  // namespace detrun
