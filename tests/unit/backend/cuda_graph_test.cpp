// Captures and graphs, and that the emulated runtime refuses while a stream is captured what a
// device refuses.
#include "backend/cuda/cuda_graph.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_transfer.h"
#include "detrun/error.h"
#include "kernels/cuda/launch_rows.h"

using namespace detrun;

namespace {

constexpr std::size_t kBytes = 256;

void fill(const CudaStream& stream, const DeviceMemory& memory, int value) {
  check_cuda(cudaMemsetAsync(memory.data(), value, memory.size(), stream.get()), "memset");
}

int first_byte(const DeviceMemory& memory) {
  unsigned char byte = 0;
  check_cuda(cudaMemcpy(&byte, memory.data(), 1, cudaMemcpyDeviceToHost), "copy");
  return byte;
}

float first_float(const DeviceMemory& memory) {
  float value = 0.0F;
  check_cuda(cudaMemcpy(&value, memory.data(), sizeof(value), cudaMemcpyDeviceToHost), "copy");
  return value;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("captured work is done by every launch of its graph, in the order of the stream") {
  const CudaStream stream;
  const DeviceMemory x(kBytes, "x");
  const DeviceMemory y(kBytes, "y");
  PinnedMemory one(sizeof(float));
  const float value = 1.0F;
  std::memcpy(one.data(), &value, sizeof(value));
  fill(stream, x, 0);
  CudaGraph graph;
  {
    CudaCapture capture(stream);
    check_cuda(
        cudaMemcpyAsync(y.data(), one.data(), one.size(), cudaMemcpyHostToDevice, stream.get()),
        "copy");
    check_cuda(cuda::add(x.as<float>(), y.as<float>(), 1, stream.get()), "add");
    graph = capture.finish();
  }
  stream.synchronize();
  CHECK(first_float(x) == 0.0F);
  const std::uint64_t launched = emulation::graphs_launched();
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  CHECK(emulation::graphs_launched() - launched == 3);
  CHECK(first_float(x) == 0.0F);  // nobody has waited
  fill(stream, y, 0);
  stream.synchronize();
  CHECK(first_float(x) == 3.0F);
  CHECK(first_float(y) == 0.0F);
  CHECK(error_of([&] { CudaGraph().launch(stream); }).find("cudaGraphLaunch") != std::string::npos);
}

TEST_CASE("a capture that is dropped leaves the stream as it was") {
  const CudaStream stream;
  const DeviceMemory x(kBytes, "x");
  fill(stream, x, 5);
  const std::uint64_t instantiated = emulation::graphs_instantiated();
  CHECK(error_of([&] {
          const CudaCapture capture(stream);
          fill(stream, x, 6);
          throw_internal("something else");
        }) == "something else");
  CHECK(emulation::graphs_instantiated() == instantiated);
  CHECK(cudaGetLastError() == cudaSuccess);
  stream.synchronize();
  CHECK(first_byte(x) == 5);
  fill(stream, x, 7);
  stream.synchronize();
  CHECK(first_byte(x) == 7);
}

TEST_CASE("what would wait or allocate is refused while a stream is captured, and spoils it") {
  const CudaStream stream;
  const DeviceMemory x(kBytes, "x");
  CudaTransfer transfer(stream);
  CudaEvent event;
  std::vector<std::byte> ordinary(kBytes);
  void* memory = nullptr;
  const std::function<cudaError_t()> calls[] = {
      [&] { return cudaStreamSynchronize(stream.get()); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMalloc(&memory, kBytes); },
      [&] { return cudaFree(nullptr); },
      [&] { return cudaHostAlloc(&memory, kBytes, cudaHostAllocDefault); },
      [&] { return cudaFreeHost(nullptr); },
      [&] { return cudaMemset(x.data(), 0, kBytes); },
      [&] { return cudaMemcpy(ordinary.data(), x.data(), kBytes, cudaMemcpyDeviceToHost); },
      [&] {
        return cudaMemcpyAsync(x.data(), ordinary.data(), kBytes, cudaMemcpyHostToDevice,
                               stream.get());
      }};
  for (const auto& call : calls) {
    CAPTURE(&call - &calls[0]);
    CudaCapture capture(stream);
    fill(stream, x, 1);
    CHECK(call() == cudaErrorStreamCaptureUnsupported);
    CHECK(error_of([&] { capture.finish(); }).find("cudaStreamEndCapture: operation failed due") !=
          std::string::npos);
  }
  {
    CudaCapture capture(stream);
    event.record(stream);
    CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) ==
          cudaErrorIllegalState);
    CHECK(error_of([&] { event.synchronize(); }).find("cudaEventSynchronize") != std::string::npos);
    CHECK(error_of([&] { capture.finish(); }) != "");
  }
  {
    CudaCapture capture(stream);  // its own slice of pinned memory would be waited for later
    const int value = 3;
    transfer.upload(x.data(), &value, sizeof(value));
    CHECK(error_of([&] {
            transfer.download(ordinary.data(), x.data(), kBytes);
          }).find("operation not permitted when stream is capturing") != std::string::npos);
    CHECK(error_of([&] { capture.finish(); }) != "");
  }
  CHECK(memory == nullptr);
  static_cast<void>(cudaGetLastError());
  stream.synchronize();
}

TEST_CASE("a capture is one thread's: another one allocates, and cannot end it") {
  const CudaStream stream;
  CudaCapture capture(stream);
  std::thread([&] {
    const DeviceMemory other(kBytes, "memory of another thread");
    CHECK(other.data() != nullptr);
  }).join();
  CHECK(!capture.finish().empty());
  CudaCapture stolen(stream);
  std::thread([&] {
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream.get(), &graph) == cudaErrorStreamCaptureWrongThread);
  }).join();
  CHECK(error_of([&] { stolen.finish(); }) != "");
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream.get(), &graph) == cudaErrorIllegalState);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) ==
        cudaErrorStreamCaptureUnsupported);
  static_cast<void>(cudaGetLastError());
}
