#pragma once

#include <string>

#include "kernels/cpu/FusedPlan.h"

namespace faiss_bits {

/// File of the constants that the environment names, or an empty string.
std::string fusedMachineFile();

/// Reads what writeFusedMachine wrote. False: there is no such file. Throws
/// Error that names the file and the line that is wrong or missing.
bool readFusedMachine(const std::string& file, FusedMachine& machine);

/// One constant a line, by name. The file is there whole or not at all; throws
/// Error if it cannot be written.
void writeFusedMachine(const std::string& file, const FusedMachine& machine);

} // namespace faiss_bits
