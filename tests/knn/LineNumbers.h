#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace faiss_bits::test {

/// Vectors of one dimension: of both signs and any size, every second an end of
/// the line: a zero of either sign, an infinity, no number.
inline std::vector<float> lineNumbers(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> all(count);
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t kind = random() % 8;
        const float size = std::ldexp(1.0f, int(random() % 270) - 148);
        all[i] = kind == 0      ? 0.0f
                : kind == 1     ? -0.0f
                : kind == 2     ? std::numeric_limits<float>::infinity()
                : kind == 3     ? std::nanf("")
                : kind % 2 == 0 ? size
                                : -size;
    }
    return all;
}

} // namespace faiss_bits::test
