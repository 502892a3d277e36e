// The known answers of the self-test, made by the scalar reference: portable version 1.
// Generator: run_self_test on kernels::scalar::kOps, the inputs' seeds are in cpu_self_test.cpp.
// They change only with the contract's version (kPortableVersion) or with the inputs.
#include "backend/cpu_self_test.h"

namespace detrun {

const std::vector<KnownAnswer>& golden_answers() {
  static const std::vector<KnownAnswer> kAnswers = {
      {"vector F32", "0a88e7fa3c487638c5c17eaa331aa090"},
      {"matmul F32", "5c30c8fb2d9ec0f984d8b6defd324c08"},
      {"vector F16", "c90e5016ef58135986375b01cafdcb89"},
      {"matmul F16", "b86168a1fc1c314a000de76d42341b9a"},
      {"vector BF16", "ba0aa449942a035817302e632cec486e"},
      {"matmul BF16", "d9241a0858a27001868c3bb23af52c1a"},
      {"vector Q4_0", "a9ca547deacdeb3f670468af82ea6ff5"},
      {"matmul Q4_0", "9281a90421336aa1d52efe274d6920a7"},
      {"vector Q4_1", "f4996f004722d2dcceb014c2d72d09af"},
      {"matmul Q4_1", "a2a09ed27c477f437faecb64ee87a1b5"},
      {"vector Q5_0", "c2ff05f373d67f08dbb53bd6968e60fd"},
      {"matmul Q5_0", "9d7a33e521fca2a7b73c11ea72cf7c7a"},
      {"vector Q5_1", "4216ae541a5b0bda1ea4e2305838c8eb"},
      {"matmul Q5_1", "e49bf215c0bc2d207c46dfc84c4174d7"},
      {"vector Q8_0", "a09527abbaac776b0c34b5339ada2b5f"},
      {"matmul Q8_0", "68faf10f7b3c5afdd1f97150606b6cc4"},
      {"vector IQ4_NL", "1edf7060fa517ee88264f6498d59603b"},
      {"matmul IQ4_NL", "c524cbc9775c1c24ad1da09df6d6c6cc"},
      {"vector Q2_K", "472dd3bd096ff5bfb10ab7ad8be8907c"},
      {"matmul Q2_K", "23c5607914c838bbbcdc2cae372a4610"},
      {"vector Q3_K", "e27e02a8e68c4cb8bd674cce7f059576"},
      {"matmul Q3_K", "fac8245b8fd8ca756253282e76e6d193"},
      {"vector Q4_K", "a3bd860d0af4c8f4d6c12ef678901b72"},
      {"matmul Q4_K", "6d82556a2466f00dc9a9d64ab286652d"},
      {"vector Q5_K", "e2d904915e4aced8a4c14487d6cbde7d"},
      {"matmul Q5_K", "59cfba32fb84e9fbffbf0b8aa798f806"},
      {"vector Q6_K", "389656a6b0316a2bbd95b308e662b19b"},
      {"matmul Q6_K", "fe5004a8fed7eb41adafed5a672531e9"},
      {"vector IQ4_XS", "9fc5ba50263c2daa92ed7da2e47db510"},
      {"matmul IQ4_XS", "7f9c19c8c29cd6c471e0d0a80ca7b2b5"},
      {"attention f16", "ca5623b72fc7cc66fbe199870d5d40df"},
      {"attention f32", "bf89f0b815e9cc1628df91369730ebbb"},
      {"attention window", "c8e0ab5cb7b89c8d12c33d79a0272933"},
      {"attention softcap", "b2e8c5413c3564d3d2aedbd89985476b"},
      {"attention sink", "0bb92e1878030d3ccffe0670885e29cf"},
      {"rope adjacent", "fea24323bd34183042f53bfbf8695864"},
      {"rope halves", "4c9de0994938145eececd78b417346a4"},
      {"quantize", "c5e06ede776a7f950ad90778632d736b"},
      {"silu_mul", "e2f63bbc8224a0e1efd2d2e4e6196d45"},
      {"add", "845ae700a5316ed57d1376bb772caa28"},
      {"mul", "f21eb6dcd9ec3df1c0bf2e363c52cb3f"},
      {"scale", "5c6c7677f1eb3b476ca4b3ae65519d0e"},
      {"add_scaled", "2835a693a7055d3470c511562e1bb34a"},
      {"softcap", "be8e567e73e296c6eab34376e5fd770e"},
      {"exp", "10ad98781c6ed278bc02ac798ae67074"},
      {"log", "60b728cf96ad78dd133f3dd57ed36f21"},
      {"tanh", "76a39d57bab77fd229211f15b6a6ee97"},
      {"erf", "0e739a9e14f669b40ef525c8311aff15"},
      {"sigmoid", "6345bdb844987f7f3d19b46faccef0e1"},
      {"silu", "807ed7e9f176092598b6b0c48095e7a9"},
      {"gelu_tanh", "3bd764628835d6c0a2918625bb8b349b"},
      {"gelu_erf", "0867f18f2671486c9cf20aee1dc32947"},
      {"rmsnorm", "d76d3798df310416cd4d5ea4cf4fc431"},
      {"layernorm", "9c137e20d026eb5b64e74a7ec3188f58"},
      {"kv_write", "f23307e0974357ddff54c953342acbb8"},
      {"refusals", "c08bc9cdc3736bb0a44230ec0566efb9"},
  };
  return kAnswers;
}

}  // namespace detrun
