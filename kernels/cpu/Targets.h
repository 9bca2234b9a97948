#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faiss_bits::cpu {

/// Instruction sets compiled in that this machine has, best first: "AVX3_ZEN4",
/// "AVX3", "AVX2", "SSE4", ..., "SCALAR" or "EMU128".
std::vector<std::string> targetNames();

/// Highway's bit for an instruction set of targetNames(). Empty: what the
/// environment's FAISS_BITS_CPU_TARGET names, or else the best of this machine.
/// Throws Error with the list for a name that is not on it.
int64_t targetOf(const std::string& name);
/// The reverse of targetOf.
std::string nameOfTarget(int64_t target);

} // namespace faiss_bits::cpu
