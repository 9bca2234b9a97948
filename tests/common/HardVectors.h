#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

/// Vectors whose float32 distances mislead.
namespace faiss_bits::test {

enum class Hard {
    Offset,     ///< far from the origin: float32 norms cancel
    Terrain,    ///< 256 heights up to 10,000
    Bytes,      ///< 0 .. 255, as SIFT: float32 is exact
    Clusters,   ///< tight ones
    Duplicates, ///< one vector in ten thousand places, and a few others
    Tiny,       ///< float32 denormals
    Huge,       ///< squares beyond float32; some distances too
    Mixed,      ///< of every size
    Infinite,   ///< some components infinite or NaN
    Ends        ///< of both signs and any size: differences beyond float32
};

inline const std::vector<Hard> kHard = {
        Hard::Offset,
        Hard::Terrain,
        Hard::Bytes,
        Hard::Clusters,
        Hard::Duplicates,
        Hard::Tiny,
        Hard::Huge,
        Hard::Mixed,
        Hard::Infinite};

inline std::vector<float> makeHard(Hard kind, int64_t n, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::mt19937 shared(77); // centres that vectors and queries have in common
    std::normal_distribution<float> normal;
    std::vector<float> centres(16 * d);
    for (float& one : centres) {
        one = 100.f * normal(shared);
    }
    std::vector<float> values(n * d);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t centre = random() % 16;
        const bool odd = random() % 50 == 0;
        for (int j = 0; j < d; ++j) {
            float& value = values[i * d + j];
            const float unit = float(random() % 1000000) / 1e6f;
            switch (kind) {
                case Hard::Offset:
                    value = 1e4f + unit;
                    break;
                case Hard::Terrain:
                    value = float(random() % 256) * (10000.f / 255.f);
                    break;
                case Hard::Bytes:
                    value = float(random() % 256);
                    break;
                case Hard::Clusters:
                    value = centres[centre * d + j] + 1e-3f * normal(random);
                    break;
                case Hard::Duplicates:
                    value = odd ? unit : float(j % 7);
                    break;
                case Hard::Tiny:
                    value = unit * 1e-38f;
                    break;
                case Hard::Huge:
                    value = unit * (odd ? 3e38f : 1e19f);
                    break;
                case Hard::Mixed:
                    value = std::ldexp(unit - 0.5f, int(random() % 40) - 20);
                    break;
                case Hard::Infinite:
                    value = unit;
                    break;
                case Hard::Ends:
                    value = (2 * unit - 1) * 3.4e38f;
                    break;
            }
        }
        if (kind == Hard::Infinite && odd) {
            const float odds[] = {
                    HUGE_VALF, -HUGE_VALF, std::nanf(""), 3e38f, -3e38f};
            values[i * d + random() % d] = odds[random() % 5];
        }
    }
    return values;
}

} // namespace faiss_bits::test
