/// Indexes that refine others, through the cloner for the GPU: what of it needs
/// none, with base indexes that have no form there and stay as they are.

#include <memory>
#include <random>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexFlat.h>
#include <faiss/IndexLSH.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cloners/ClonedRefine.h"
#include "faiss_bits/cloners/GpuBitsCloner.h"

namespace faiss_bits::test {
namespace {

constexpr int kD = 16;
constexpr int64_t kN = 500;
constexpr int64_t kQ = 20;
constexpr int64_t kK = 7;

std::vector<float> normals(int64_t n, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(n * kD);
    for (float& value : values) {
        value = normal(random);
    }
    return values;
}

struct Found {
    std::vector<float> distances = std::vector<float>(kQ * kK);
    std::vector<int64_t> labels = std::vector<int64_t>(kQ * kK);
    bool operator==(const Found&) const = default;
};

Found searchIn(const faiss::Index& index, const std::vector<float>& queries) {
    Found found;
    index.search(
            kQ,
            queries.data(),
            kK,
            found.distances.data(),
            found.labels.data());
    return found;
}

std::unique_ptr<faiss::Index> cloneOf(const faiss::Index& index) {
    gpu::BitsToGpuCloner cloner(nullptr, 0, faiss::gpu::GpuClonerOptions());
    return std::unique_ptr<faiss::Index>(cloner.clone_Index(&index));
}

TEST(RefineClone, IsCopiedByItsParts) {
    const auto vectors = normals(kN, 1);
    const auto queries = normals(kQ, 2);
    faiss::IndexLSH base(kD, 64);
    base.add(kN, vectors.data());
    faiss::IndexRefineFlat refine(&base, vectors.data());
    refine.k_factor = 5;
    const Found want = searchIn(refine, queries);

    const auto clone = cloneOf(refine);
    auto* ours = dynamic_cast<faiss::IndexRefineFlat*>(clone.get());
    ASSERT_NE(ours, nullptr);
    EXPECT_TRUE(dynamic_cast<faiss::IndexLSH*>(ours->base_index));
    EXPECT_TRUE(dynamic_cast<faiss::IndexFlat*>(ours->refine_index));
    EXPECT_NE(ours->base_index, refine.base_index);
    EXPECT_NE(ours->refine_index, refine.refine_index);
    EXPECT_TRUE(ours->own_fields && ours->own_refine_index);
    EXPECT_EQ(ours->k_factor, 5);
    EXPECT_EQ(ours->ntotal, kN);
    EXPECT_TRUE(searchIn(*ours, queries) == want);

    // Each goes on by itself.
    ours->add(kQ, queries.data());
    EXPECT_EQ(ours->ntotal, kN + kQ);
    EXPECT_EQ(refine.ntotal, kN);
    EXPECT_EQ(searchIn(*ours, queries).labels[0], kN);
    EXPECT_TRUE(searchIn(refine, queries) == want);
}

/// An IndexRefine by any other index stays one, by a copy on the CPU, of one
/// too that the cloner would take to the GPU.
TEST(RefineClone, ByAnyIndex) {
    const auto vectors = normals(kN, 1);
    const auto queries = normals(kQ, 2);
    faiss::IndexLSH base(kD, 64);
    base.add(kN, vectors.data());
    faiss::IndexScalarQuantizer halves(kD, faiss::ScalarQuantizer::QT_fp16);
    halves.train(kN, vectors.data());
    halves.add(kN, vectors.data());
    faiss::IndexRefine refine(&base, &halves);
    refine.k_factor = 3;
    const auto clone = cloneOf(refine);
    ASSERT_TRUE(typeid(*clone) == typeid(faiss::IndexRefine));
    auto& ours = static_cast<faiss::IndexRefine&>(*clone);
    EXPECT_TRUE(dynamic_cast<faiss::IndexScalarQuantizer*>(ours.refine_index));
    EXPECT_TRUE(searchIn(ours, queries) == searchIn(refine, queries));
}

/// Also inside another one.
TEST(RefineClone, Nested) {
    const auto vectors = normals(kN, 1);
    const auto queries = normals(kQ, 2);
    faiss::IndexLSH base(kD, 64);
    base.add(kN, vectors.data());
    faiss::IndexRefineFlat inner(&base, vectors.data());
    faiss::IndexRefineFlat outer(&inner, vectors.data());
    outer.k_factor = 2;
    const auto clone = cloneOf(outer);
    ASSERT_TRUE(dynamic_cast<faiss::IndexRefineFlat*>(clone.get()));
    EXPECT_TRUE(dynamic_cast<faiss::IndexRefineFlat*>(
            static_cast<faiss::IndexRefineFlat&>(*clone).base_index));
    EXPECT_TRUE(searchIn(*clone, queries) == searchIn(outer, queries));
}

struct OtherRefine : faiss::IndexRefineFlat {
    using faiss::IndexRefineFlat::IndexRefineFlat;
};

TEST(RefineClone, OthersAreNotTakenForIt) {
    faiss::IndexLSH base(kD, 64);
    const OtherRefine other(&base);
    const auto never = [](const faiss::Index*) -> faiss::Index* {
        ADD_FAILURE() << "asked for a part";
        return nullptr;
    };
    EXPECT_EQ(detail::cloneRefine(&base, never, never), nullptr);
    EXPECT_EQ(detail::cloneRefine(&other, never, never), nullptr);
    EXPECT_EQ(detail::cloneRefine(nullptr, never, never), nullptr);
}

/// A part that cannot be copied: nothing is left behind (which AddressSanitizer
/// sees), and the exception is that of the part.
TEST(RefineClone, PartsThatFail) {
    const auto vectors = normals(kN, 1);
    faiss::IndexLSH base(kD, 64);
    base.add(kN, vectors.data());
    const faiss::IndexRefineFlat refine(&base, vectors.data());
    const auto copy = [](const faiss::Index*) -> faiss::Index* {
        return new faiss::IndexFlatL2(kD);
    };
    const auto fail = [](const faiss::Index*) -> faiss::Index* {
        FAISS_THROW_MSG("no room");
    };
    EXPECT_THROW(
            detail::cloneRefine(&refine, fail, copy), faiss::FaissException);
    EXPECT_THROW(
            detail::cloneRefine(&refine, copy, fail), faiss::FaissException);
}

} // namespace
} // namespace faiss_bits::test
