#pragma once

#include <cstdint>

#include "benchs/common/Keys.h"

namespace faiss_bits::bench {

/// How the sample of the method under attack is drawn: SamplePlaces.h. The
/// adversaries lay out their keys by it.
struct SampleLayout {
    int threads = 0;
    int places = 0; ///< a thread; 0: no sample is drawn
    uint32_t parts = 1;
};

/// What the keys of a matrix are made of.
struct KeyRecipe {
    Order order = Order::Random;
    DataType type = DataType::Float32;
    int64_t rows = 0;
    int64_t cols = 0;
    int k = 0;            ///< of Order::BestRun
    bool largest = false; ///< what the best are, where an order places them
    uint64_t seed = 0;
    SampleLayout sample; ///< of the adversaries
};

/// Fills keys [rows, cols] on the device, and waits: any order save those that
/// need vectors. At most 2^32 - 1 keys. The same recipe, the same keys.
/// An adversary without a sample is Order::Random.
void fillKeys(void* keys, const KeyRecipe& recipe);

/// Changes the sign of `count` keys, so that the largest become the smallest;
/// NaN stays as it is. Waits.
void negateKeys(void* keys, DataType type, int64_t count);

/// Copies rows to a matrix with `stride` elements from row to row; what is
/// between the rows becomes NaN. Waits.
void spreadRows(
        const void* from,
        void* to,
        DataType type,
        int64_t rows,
        int64_t cols,
        int64_t stride);

} // namespace faiss_bits::bench
