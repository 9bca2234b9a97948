#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <faiss/IndexFlat.h>

#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {

/// The suites of this folder are what every exact flat index must pass. They
/// are written over a kind of index (CpuFlatKind.h, GpuFlatKind.h), and a
/// program instantiates them, with its own name for the suite:
///
///   INSTANTIATE_TYPED_TEST_SUITE_P(FusedFlatSearch, FlatSearch, CpuFlatKind);
///
/// A kind says:
///
/// Index, Fixture   the class, and the fixture of its tests, which has
///                  prepare() (GpuTest.h)
/// Case             a shape: metric, n, d, q, fill, seed
/// Data             of a Case: vectors, queries, makeIndex(), expectNearest()
///                  within the index's rounding, expectExact() for integers
/// casesOf          a Case with every metric and storage of the index
/// roundsIntegers   true if distances of integers are not exact
/// fewer            n, or a part of it where n vectors would take too long
/// searchInPlace    a search in the memory where the index works
/// forEveryRun      makes a call in every setting that must not change a bit
/// faissIndex       FAISS's own index with the same vectors, and
/// agreement        the part of its labels that must be ours
/// make, copyOf     constructors
/// tooManyVectors   one more than the index may have
/// tooLargeK        values of k that the index refuses as too large
/// kEmptyComponent  of the vector that search_and_reconstruct gives for -1
/// kDimensions, kOutput, kCount, kResidualKey
///                  what errors call the arguments that have two names in FAISS
template <class Kind>
concept FlatKind = requires(
        const typename Kind::Case& c,
        const typename Kind::Data& data,
        const typename Kind::Index& index,
        int64_t n,
        faiss::MetricType metric,
        const faiss::IndexFlat& flat) {
    requires std::derived_from<typename Kind::Fixture, ::testing::Test>;
    { Kind::casesOf(c) } -> std::same_as<std::vector<typename Kind::Case>>;
    { Kind::roundsIntegers(c) } -> std::same_as<bool>;
    { Kind::fewer(n) } -> std::same_as<int64_t>;
    {
        Kind::searchInPlace(index, data.queries, n)
        } -> std::same_as<SearchOutput>;
    Kind::forEveryRun([](const std::string&) {});
    { Kind::faissIndex(data) } -> std::same_as<std::unique_ptr<faiss::Index>>;
    { Kind::agreement(c) } -> std::same_as<double>;
    Kind::make(int(n), metric);
    Kind::copyOf(flat);
    { Kind::tooManyVectors() } -> std::same_as<int64_t>;
    { Kind::tooLargeK() } -> std::same_as<std::vector<int64_t>>;
    { Kind::kEmptyComponent } -> std::convertible_to<float>;
    { Kind::kDimensions } -> std::convertible_to<std::string>;
    { Kind::kOutput } -> std::convertible_to<std::string>;
    { Kind::kCount } -> std::convertible_to<std::string>;
    { Kind::kResidualKey } -> std::convertible_to<std::string>;
};

/// Metrics that no index has.
inline std::vector<faiss::MetricType> otherMetrics() {
    return {faiss::MetricType(18), faiss::MetricType(30)};
}

} // namespace faiss_bits::test
