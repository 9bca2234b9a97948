#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/CanonicalOracle.h"

/// Results of many queries, of which some are looked at.
namespace faiss_bits::test {

/// Up to `most` rows of distances and ids, the first and the last among them,
/// hold what wanted(row) gives. Case has q, k, isL2 and describe().
template <class Case, class Wanted>
::testing::AssertionResult someRowsAreCanonical(
        const Case& c,
        const std::vector<float>& distances,
        const std::vector<int64_t>& ids,
        const Wanted& wanted,
        int64_t most = 16) {
    for (int64_t i = 0; i < std::min<int64_t>(c.q, most); ++i) {
        const int64_t row = c.q <= most ? i : i * (c.q - 1) / (most - 1);
        const auto result = isCanonical(
                wanted(row),
                !c.isL2,
                distances.data() + row * c.k,
                ids.data() + row * c.k,
                c.k);
        if (!result) {
            return ::testing::AssertionFailure()
                    << result.message() << "\n  query " << row << " of "
                    << c.describe();
        }
    }
    return ::testing::AssertionSuccess();
}

} // namespace faiss_bits::test
