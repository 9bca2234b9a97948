#pragma once

#include <string>
#include <vector>

namespace faiss_bits {

/// The ways in which runSelect can select. All of them keep its contract; they
/// differ in speed and in what they can take (docs/algorithms.md).
enum class SelectAlgorithm {
    Auto, ///< from the tuning table

    // One read, keys in registers; up to 16384 columns.
    ShortRows, ///< 8 to 32 lanes a row: a bound by bisection, then a sort

    // One pass, the best k in shared memory; k <= 2048.
    Bits, ///< Hanak 2023, 4.1: a radius, a buffer, bitonic merges

    // Any k.
    SampleThreshold, ///< a limit from a sample, one pass, survivors sorted
    BitsGlobal,      ///< Hanak 2023, 5.6: bits with its list in global memory
    SampleSelect,    ///< Hanak 2023, 4.3.2: one stage, keys and ids partitioned
    SampleSelectTwoStage, ///< Hanak 2023, 4.3: find the k-th, then gather
    RadixSelect,          ///< Hanak 2023, 3.7.2
    Sort                  ///< CUB's radix sort of every row
};

/// Every algorithm but Auto.
const std::vector<SelectAlgorithm>& selectAlgorithms();

/// "auto", "bits", "sample_threshold" and so on; "?" for no such algorithm.
const char* nameOf(SelectAlgorithm algorithm);

/// The reverse of nameOf. Throws Error that names `name` and lists the names.
SelectAlgorithm selectAlgorithmOf(const std::string& name);

} // namespace faiss_bits
