#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/impl/FaissException.h>
#include <gtest/gtest.h>

#include "tests/common/Compare.h"
#include "tests/common/ExpectError.h"

/// What the tests of the index classes share, with or without a GPU.
namespace faiss_bits::test {

/// True if `call` throws a FaissException that names the argument and, where
/// given, its value.
template <class Call>
::testing::AssertionResult faissThrowsNaming(
        Call&& call,
        const std::string& argument,
        const std::string& value = "") {
    try {
        call();
    } catch (const faiss::FaissException& error) {
        return names(error.what(), argument, value);
    } catch (const std::exception& error) {
        return ::testing::AssertionFailure()
                << "not a FaissException: " << error.what();
    }
    return ::testing::AssertionFailure()
            << "nothing was thrown for a bad " << argument;
}

enum class Fill {
    Uniform, ///< in [-1, 1)
    /// Integers in -4..4: with d <= 10000 every distance is exact in fp32 and
    /// in fp16 storage, so results must be the oracle's, ties and all.
    Integers
};

inline std::vector<float> makeVectors(
        int64_t n,
        int d,
        uint32_t seed,
        Fill fill = Fill::Uniform) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1.f, 1.f);
    std::uniform_int_distribution<int> integer(-4, 4);
    std::vector<float> values(size_t(n) * d);
    for (float& value : values) {
        value = fill == Fill::Uniform ? uniform(random) : integer(random);
    }
    return values;
}

struct SearchOutput {
    std::vector<float> distances;
    std::vector<int64_t> labels;
};

inline ::testing::AssertionResult sameOutput(
        const SearchOutput& a,
        const SearchOutput& b) {
    if (a.labels.size() != b.labels.size()) {
        return ::testing::AssertionFailure() << "different sizes";
    }
    for (size_t i = 0; i < a.labels.size(); ++i) {
        if (a.labels[i] != b.labels[i] ||
            !sameBits(a.distances[i], b.distances[i])) {
            return ::testing::AssertionFailure()
                    << "place " << i << " is (" << a.distances[i] << ", "
                    << a.labels[i] << ") and (" << b.distances[i] << ", "
                    << b.labels[i] << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

inline SearchOutput searchOnHost(
        const faiss::Index& index,
        const std::vector<float>& queries,
        int64_t k,
        const faiss::SearchParameters* params = nullptr) {
    const int64_t q = int64_t(queries.size()) / index.d;
    SearchOutput out;
    out.distances.assign(q * k, -123.f);
    out.labels.assign(q * k, -123);
    index.search(
            q,
            queries.data(),
            k,
            out.distances.data(),
            out.labels.data(),
            params);
    return out;
}

} // namespace faiss_bits::test
