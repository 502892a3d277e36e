// Facts about this machine and process out of /proc, the C library and the environment; the parts
// that parse text take it as an argument, so that tests can give them another machine's. Inside of
// host.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "detrun/json.h"

namespace detrun {

/// Text as it is when it is printable ASCII; every other byte, and the backslash, as \xNN.
std::string ascii_only(std::string_view text);

/// Contents of a small file such as those of /proc; empty when it cannot be read. At most 1 MiB.
std::string read_small_file(const std::string& path);

/// Model, vendor and the flags that decide which kernels can run, of the first processor of a
/// /proc/cpuinfo. Names that the architecture's file lacks are left out.
Json describe_cpu(std::string_view cpuinfo);

/// Value of a "Name:\tvalue" line of /proc/self/status; empty when there is none.
std::string status_line(std::string_view status, std::string_view name);

/// The first run of exactly 64 hexadecimal digits that follows `folder` in the text of
/// /proc/self/cgroup or mountinfo: the id that Docker, containerd, CRI-O and Podman give a
/// container; empty when there is none. (In mountinfo the layers of an image look alike.)
std::string container_id(std::string_view text, std::string_view folder);

/// The floating-point control register as found: raw value, and what matters of it by name.
Json describe_fp_control(std::uint32_t found);

/// True for a variable that can change which code runs or how it counts.
bool environment_matters(std::string_view name);

/// The variables of this process that matter, by name in bytewise order.
std::map<std::string, std::string> environment_that_matters();

}  // namespace detrun
