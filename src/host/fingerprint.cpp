// Assembles the stack document: what binds a replay (for `portable` the arithmetic contract alone)
// and what is merely written down. Integers and strings only, ASCII names, so that its canonical
// form is defined; no digest of whole files, so that it never delays a first token.
#include <sys/utsname.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <variant>

#include "detrun/host.h"
#include "host/objects.h"
#include "host/system.h"

namespace detrun {
namespace {

std::string libc_version() {
#if defined(__GLIBC__)
  return std::string("glibc ") + gnu_get_libc_version();
#else
  return "unknown";
#endif
}

Json describe_build() {
  const BuildInfo& info = build_info();
  Json build = Json::object();
  build.set("version", info.version);
  build.set("compiler", info.compiler);
  build.set("flags", Json::bytes(info.flags));
  build.set("type", info.build_type);
  build.set("kernel_sha256", info.kernel_sha256);
  build.set("cuda", info.cuda);
  return build;
}

Json describe_device(const DeviceInfo& device) {
  Json out = Json::object();
  out.set("index", std::int64_t{device.index});
  out.set("name", ascii_only(device.name));
  out.set("uuid", device.uuid);
  out.set("compute_capability", std::to_string(device.major) + "." + std::to_string(device.minor));
  out.set("memory_bytes", static_cast<std::int64_t>(device.memory_bytes));
  out.set("multiprocessors", std::int64_t{device.n_multiprocessors});
  out.set("ecc", device.ecc ? "on" : "off");
  out.set("cuda_driver", device.driver);
  out.set("cuda_runtime", device.runtime);
  for (const DeviceFact& fact : device.facts) {
    const auto* number = std::get_if<std::int64_t>(&fact.value);
    out.set(fact.name, number != nullptr ? Json(*number)
                                         : Json(ascii_only(std::get<std::string>(fact.value))));
  }
  return out;
}

Json describe_backend(const BackendInfo& backend) {
  Json cpus = Json::array();
  for (const std::uint32_t cpu : backend.cpus) cpus.push_back(std::int64_t{cpu});
  Json out = Json::object();
  out.set("name", backend.name);
  out.set("isa", backend.isa);
  out.set("threads", std::int64_t{backend.n_threads});
  out.set("pinned_cpus", std::move(cpus));
  out.set("fp_control_found", describe_fp_control(backend.fp_control_found));
  if (backend.device) {
    out.set("device", describe_device(*backend.device));
    out.set("graph", backend.graph ? "on" : "off");
  }
  return out;
}

Json describe_system() {
  Json out = Json::object();
  utsname names{};
  if (uname(&names) == 0) {
    out.set("name", Json::bytes(names.sysname));
    out.set("release", Json::bytes(names.release));
    out.set("version", Json::bytes(names.version));
    out.set("machine", Json::bytes(names.machine));
    out.set("hostname", Json::bytes(names.nodename));
  }
  out.set("libc", libc_version());
  std::string container = container_id(read_small_file("/proc/self/cgroup"), "");
  if (container.empty()) {
    container = container_id(read_small_file("/proc/self/mountinfo"), "containers/");
  }
  if (!container.empty()) out.set("container", container);
  return out;
}

Json describe_objects() {
  Json objects = Json::object();
  for (const LoadedObject& object : loaded_objects()) {
    if (!object.path.empty()) objects.set(ascii_only(object.path), object.build_id);
  }
  return objects;
}

std::string program_build_id() {
  for (const LoadedObject& object : loaded_objects()) {
    if (object.path.empty()) return object.build_id;
  }
  return {};
}

}  // namespace

Json binding_of(const BackendInfo& backend, const std::string& profile,
                const std::string& library) {
  Json numerics = Json::object();
  numerics.set("profile", profile);
  numerics.set("version", kNumericsVersion);
  Json binding = Json::object();
  binding.set("numerics", std::move(numerics));
  if (profile == kPortable) return binding;
  Json products = Json::object();
  products.set("backend", backend.name);
  products.set("architecture", backend.isa);
  products.set("cublaslt", library);
  if (backend.device) {
    products.set("multiprocessors", std::int64_t{backend.device->n_multiprocessors});
    products.set("cuda_runtime", backend.device->runtime);
  }
  binding.set("products", std::move(products));
  return binding;
}

Json collect_fingerprint(const BackendInfo& backend, const std::string& profile,
                         const std::string& library) {
  Json cpu = describe_cpu(read_small_file("/proc/cpuinfo"));
  cpu.set("allowed", status_line(read_small_file("/proc/self/status"), "Cpus_allowed_list"));

  Json environment = Json::object();
  for (const auto& [name, value] : environment_that_matters()) {
    environment.set(ascii_only(name), Json::bytes(value));
  }

  Json informational = Json::object();
  informational.set("program_build_id", program_build_id());
  informational.set("build", describe_build());
  informational.set("backend", describe_backend(backend));
  informational.set("cpu", std::move(cpu));
  informational.set("system", describe_system());
  informational.set("environment", std::move(environment));
  informational.set("objects", describe_objects());

  Json stack = Json::object();
  stack.set("binding", binding_of(backend, profile, library));
  stack.set("informational", std::move(informational));
  return stack;
}

}  // namespace detrun
