#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchs/ivf/IvfIndexes.h"

namespace faiss_bits::bench {

/// Searches of one index, of bench_ivf --sweep.
struct IvfSweepIndex {
    IvfShape shape;
    int64_t n = 0;
    std::string data; ///< of makeIvfVectors, or sift
    uint64_t seed = 0;

    struct Search {
        int cell = 0; ///< its number in the sweep
        int nprobe = 0;
        int64_t q = 0;
        int k = 0;
    };
    std::vector<Search> searches;
};

/// What cells keep to; FAISS takes about 0.05 s for the most operations.
constexpr int64_t kLeastIvfN = 10000;
constexpr int64_t kMostIvfN = int64_t(1) << 21;
constexpr int64_t kMostIvfComponents = int64_t(1) << 28; ///< n d
constexpr int64_t kMostIvfQueries = 20000;
constexpr int kMostIvfK = 2048;
constexpr double kMostIvfPairComponents = 4e10;         ///< of even lists
constexpr int64_t kMostIvfProbedK = int64_t(1) << 29;   ///< q nprobe k
constexpr int64_t kMostIvfResiduals = int64_t(1) << 31; ///< q nprobe d
/// Of flann's SIFT file.
constexpr int64_t kSiftVectors = 99000;
constexpr int64_t kSiftQueries = 1000;
constexpr int kSiftD = 128;

/// True if a search keeps to them.
bool isIvfSweepSearch(
        const IvfSweepIndex& index,
        const IvfSweepIndex::Search& search);

/// `cells` searches, four of each index; the same for the same seed, and a
/// longer list begins as a shorter one. Sizes are of any power of two alike.
std::vector<IvfSweepIndex> drawIvfSweep(
        uint64_t seed,
        int cells,
        bool withSift);

} // namespace faiss_bits::bench
