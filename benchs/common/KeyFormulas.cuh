/// Keys by formulas of their row and column, so that any of them can be made on
/// its own; what needs the keys before it is in StructuredKeys.cu.
#pragma once

#include <cstdint>

namespace faiss_bits::bench {

/// The finalizer of SplitMix64.
__device__ inline uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

__device__ inline uint64_t hashOf(uint64_t seed, uint64_t number) {
    return mixed(seed + (number + 1) * 0x9E3779B97F4A7C15ull);
}

/// In (0, 1].
__device__ inline float uniform(uint64_t hash) {
    return float((hash >> 40) + 1) * (1.0f / 16777216.0f);
}

/// Number i of those that a row draws for itself: its period and so on.
__device__ inline uint64_t ofRow(uint64_t row, int i) {
    return hashOf(row ^ 0xD6E8FEB86659FD93ull, i);
}

/// From `least` to `most`, each power of two as likely.
__device__ inline uint32_t logUniform(
        uint64_t hash,
        uint32_t least,
        uint32_t most) {
    const float value =
            float(least) * exp2f(uniform(hash) * log2f(float(most) / least));
    return min(max(uint32_t(value), least), most);
}

/// Half of the rows have a power of two, which agrees with the strides of
/// scans.
__device__ inline uint32_t periodOf(uint64_t row, uint32_t cols) {
    const uint32_t period = logUniform(ofRow(row, 0), 2, cols);
    return ofRow(row, 1) & 1 ? 1u << (31 - __clz(period)) : period;
}

/// Formulas: `row` is the hash of the row; smaller is better.
struct SawTooth {
    uint32_t cols;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const uint32_t period = periodOf(row, cols);
        const uint32_t begin = uint32_t(ofRow(row, 2) % period);
        const float part = float((c + begin) % period) / float(period);
        return ofRow(row, 3) & 1 ? part : 1 - part;
    }
};

/// Down to a place and up again, or the reverse.
struct OrganPipe {
    uint32_t cols;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const uint32_t middle = uint32_t(ofRow(row, 0) % cols);
        const uint32_t distance = c < middle ? middle - c : c - middle;
        const float part = float(distance) / float(cols);
        return ofRow(row, 1) & 1 ? part : 1 - part;
    }
};

struct BestRun {
    uint32_t cols;
    uint32_t k;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const float about = float(k) * exp2f(2 * uniform(ofRow(row, 0)) - 1);
        const uint32_t length = min(max(uint32_t(about), 1u), cols);
        const uint32_t begin = uint32_t(ofRow(row, 1) % (cols - length + 1));
        const float u = uniform(hashOf(row, c));
        return c - begin < length ? u / 512 : (1 + 15 * u) / 16;
    }
};

struct Periodic {
    uint32_t cols;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        return uniform(hashOf(row, c % periodOf(row, cols)));
    }
};

struct HeavyTail {
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const float u = uniform(hashOf(row, c));
        return 1 / (u * u * u * u);
    }
};

/// Exponents from `least` to `most`.
struct AnyExponent {
    float least;
    float most;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const uint64_t hash = hashOf(row, c);
        const float value = exp2f(least + (most - least) * uniform(hash));
        return hash & 1 ? value : -value;
    }
};

struct MostlyInf {
    __device__ float operator()(uint64_t row, uint32_t c) const {
        const float u = uniform(hashOf(row, c));
        return u <= 0.001f ? u * 1000 : __uint_as_float(0x7F800000u);
    }
};

/// Uniform in a half of (0, 1]; the adversaries write to the other half.
struct HalfRange {
    float begin;
    __device__ float operator()(uint64_t row, uint32_t c) const {
        return begin + uniform(hashOf(row, c)) / 2;
    }
};

// ---- keys that depend on those before them ----------------------------------

/// State of a column, how two join, and the key of all up to a column.
struct Walk {
    using State = float;
    static constexpr float kNone = 0;
    __device__ State at(uint64_t row, uint32_t c) const {
        return 2 * uniform(hashOf(row, c)) - 1;
    }
    __device__ State operator()(State a, State b) const {
        return a + b;
    }
    __device__ float key(uint64_t, uint32_t, State sum) const {
        return sum;
    }
};

/// Each run is known by the column where it begins; the mean length of those
/// of a row is 8 to 4096.
struct Clusters {
    using State = uint32_t;
    static constexpr uint32_t kNone = 0;
    __device__ State at(uint64_t row, uint32_t c) const {
        const uint32_t mean = logUniform(ofRow(row, 0), 8, 4096);
        const bool begins = uint32_t(hashOf(row, c)) < 0xFFFFFFFFu / mean;
        return begins ? c : 0;
    }
    __device__ State operator()(State a, State b) const {
        return max(a, b);
    }
    __device__ float key(uint64_t row, uint32_t c, State begin) const {
        const float center = uniform(ofRow(row ^ begin, 1));
        return center + 0.01f * uniform(hashOf(row ^ 1, c));
    }
};

} // namespace faiss_bits::bench
