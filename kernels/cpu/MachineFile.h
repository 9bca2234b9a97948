#pragma once

#include <string>

#include "kernels/cpu/Machine.h"

namespace faiss_bits::cpu {

/// File of the constants that the environment names, or an empty string.
std::string machineFile();

/// Reads what writeMachine wrote. False: there is no such file. Throws
/// Error that names the file and the line that is wrong or missing.
bool readMachine(const std::string& file, Machine& machine);

/// One constant a line, by name. The file is there whole or not at all; throws
/// Error if it cannot be written.
void writeMachine(const std::string& file, const Machine& machine);

} // namespace faiss_bits::cpu
