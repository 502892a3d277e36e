// The program and the shared objects mapped into this process, by GNU build id. Inside of host.
#pragma once

#include <string>
#include <vector>

namespace detrun {

/// One mapped ELF object as the dynamic loader lists it.
struct LoadedObject {
  std::string path;      ///< empty: the program itself
  std::string build_id;  ///< lower-case hex of the GNU build-id note; empty when it has none
};

/// In load order, the program first.
std::vector<LoadedObject> loaded_objects();

/// Path of the running program's file by /proc/self/exe; empty when it cannot be read.
std::string program_path();

}  // namespace detrun
