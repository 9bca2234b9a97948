#pragma once

#include <type_traits>

#include "kernels/cpu/Problem.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// What other arithmetic than that of T is for: certified searches of float32,
/// with L2 or inner product, packed.
template <class T>
bool isCertifiedPacked(const Setup<T>& setup, const Problem<T>& problem) {
    return std::is_same_v<T, float> && problem.mode != SearchMode::Plain &&
            problem.choice.variant != Variant::Direct &&
            (setup.metric == KernelMetric::L2 ||
             setup.metric == KernelMetric::Product);
}

} // namespace faiss_bits::cpu
