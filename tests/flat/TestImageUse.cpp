/// When a search is expected to have an image of the vectors, and when it has.

#include <gtest/gtest.h>

#include "faiss_bits/flat/VectorFacts.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::ImageUse;
using gpu::detail::VectorFacts;

FlatKnnProblem shapeOf(idx_t n, idx_t q, int d, int k) {
    FlatKnnProblem p;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = k;
    return p;
}

/// What is expected of an image is what happens: small searches are counted
/// until one is worth it. Those before it make no CUDA call.
TEST(VectorFacts, ImageUseIsWhatGiveToDoes) {
    VectorFacts facts(true);
    const gpu::detail::GpuContext nowhere;
    const FlatKnnProblem small = shapeOf(1 << 20, 10, 128, 10);
    for (int search = 1; search <= 4; ++search) {
        FlatKnnProblem p = small;
        EXPECT_EQ(facts.imageUse(p), ImageUse::NotYet) << search;
        EXPECT_EQ(facts.imageUse(p), ImageUse::NotYet) << "asked twice";
        EXPECT_EQ(facts.giveTo(p, nowhere), ImageUse::NotYet) << search;
        EXPECT_FALSE(p.searchImage);
    }
    FlatKnnProblem p = small;
    EXPECT_EQ(facts.expectFor(p), ImageUse::Make);
    EXPECT_TRUE(p.searchImage);
    facts.forget();
    EXPECT_EQ(facts.imageUse(small), ImageUse::NotYet);
    EXPECT_EQ(facts.imageUse(shapeOf(1 << 20, 1000, 128, 10)), ImageUse::Make);

    p = shapeOf(10000, 1, 128, 10); // all distances
    EXPECT_EQ(facts.imageUse(p), ImageUse::None);
    EXPECT_EQ(facts.giveTo(p, nowhere), ImageUse::None);
    p = shapeOf(1 << 20, 10, 2, 10); // too short for 16 bits
    EXPECT_EQ(facts.giveTo(p, nowhere), ImageUse::None);
    p = small;
    p.mode = SearchMode::Plain;
    EXPECT_EQ(facts.giveTo(p, nowhere), ImageUse::None);
    const VectorFacts never(false);
    EXPECT_EQ(never.imageUse(small), ImageUse::None);

    // Facts of rows are expected too.
    p = shapeOf(1 << 20, 10, 32, 10);
    p.metric = Metric::Canberra;
    EXPECT_EQ(facts.expectFor(p), ImageUse::None);
    EXPECT_TRUE(p.vectorFacts && p.rowMaxima);
}

} // namespace
} // namespace faiss_bits::test
