#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Vectors and queries of bench_ivf.
namespace faiss_bits::bench {

/// Calls make(i) for 0 <= i < count, by all threads of the host.
void forAll(int64_t count, const std::function<void(int64_t)>& make);

/// Kinds of vectors that are made:
///
///   uniform     in [0, 1)
///   clustered   around 2,000 centers, of which some are much more popular
///   walk        components are a random walk, so that neighbours are alike
///   duplicates  uniform, each vector sixteen times
///   far         uniform, 10 away from the origin in every component
const std::vector<std::string>& ivfDataNames();

/// [count, d] of one of them; the same for the same seed. Exits with 2 for
/// another name.
std::vector<float> makeIvfVectors(
        const std::string& data,
        int64_t count,
        int d,
        uint64_t seed);

/// Vectors of a file: .bvecs or .fvecs, a vector is its dimension as a 32-bit
/// number, then its components.
struct FileVectors {
    int d = 0;
    std::vector<float> values; ///< [count(), d]

    int64_t count() const {
        return d ? int64_t(values.size()) / d : 0;
    }
};

/// Throws std::runtime_error that names the file.
FileVectors readVectors(const std::string& path);

} // namespace faiss_bits::bench
