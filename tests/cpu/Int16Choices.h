#pragma once

#include <vector>

#include "kernels/cpu/Int16.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {

/// Choices of a variant that are forced to integers, on every target that has
/// them: all but SCALAR on x86.
inline std::vector<cpu::Choice> int16ChoicesOf(cpu::Variant variant) {
    std::vector<cpu::Choice> choices;
    for (cpu::Choice choice : choicesOf(variant)) {
        if (cpu::int16KernelsFor(cpu::targetOf(choice.target))) {
            choice.arithmetic = cpu::Arithmetic::Int16;
            choices.push_back(choice);
        }
    }
    return choices;
}

} // namespace faiss_bits::test
