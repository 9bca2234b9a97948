/// The cells of bench_ivf --sweep and the vectors of bench_ivf: what runs
/// without a GPU.

#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "benchs/ivf/IvfData.h"
#include "benchs/ivf/IvfSweepCells.h"

namespace faiss_bits::bench {
namespace {

std::vector<std::string> describe(const std::vector<IvfSweepIndex>& indexes) {
    std::vector<std::string> texts;
    for (const IvfSweepIndex& index : indexes) {
        for (const auto& s : index.searches) {
            texts.push_back(
                    std::to_string(s.cell) + index.shape.kind.name +
                    index.data + std::to_string(index.n) + " " +
                    std::to_string(index.shape.d) + " " +
                    std::to_string(index.shape.nlist) + " " +
                    std::to_string(s.nprobe) + " " + std::to_string(s.q) + " " +
                    std::to_string(s.k) + " " + std::to_string(index.seed));
        }
    }
    return texts;
}

TEST(IvfSweepCells, SameSeedSameCells) {
    const auto some = describe(drawIvfSweep(7, 50, true));
    EXPECT_EQ(some.size(), 50u);
    EXPECT_EQ(some, describe(drawIvfSweep(7, 50, true)));
    EXPECT_NE(some, describe(drawIvfSweep(8, 50, true)));
    // A longer run begins as a shorter one.
    auto longer = describe(drawIvfSweep(7, 60, true));
    longer.resize(50);
    EXPECT_EQ(longer, some);
}

TEST(IvfSweepCells, AllKeepToTheLimitsAndReachThem) {
    std::set<std::string> kinds;
    std::set<std::string> data;
    int cell = 0;
    for (const IvfSweepIndex& index : drawIvfSweep(3, 4000, true)) {
        const IvfShape& shape = index.shape;
        kinds.insert(shape.kind.name);
        data.insert(index.data);
        ASSERT_GE(index.n, kLeastIvfN);
        ASSERT_LE(index.n, kMostIvfN);
        ASSERT_LE(index.n * shape.d, kMostIvfComponents);
        ASSERT_LE(shape.nlist, index.n);
        if (const int parts = shape.kind.parts()) {
            ASSERT_EQ(shape.d % parts, 0) << shape.kind.name << " " << shape.d;
        }
        if (index.data == "sift") {
            ASSERT_EQ(shape.d, kSiftD);
            ASSERT_LE(index.n, kSiftVectors);
        }
        for (const auto& search : index.searches) {
            ASSERT_EQ(search.cell, cell++);
            ASSERT_TRUE(isIvfSweepSearch(index, search));
        }
    }
    EXPECT_EQ(data.size(), ivfDataNames().size() + 1);
    for (const char* kind :
         {"ivf_flat", "ivf_sq8", "ivf_sq6", "ivf_sq4", "ivf_fp16", "ivf_pq8"}) {
        EXPECT_EQ(kinds.count(kind), 1u) << kind;
    }
    for (const IvfSweepIndex& index : drawIvfSweep(3, 400, false)) {
        EXPECT_NE(index.data, "sift");
    }
}

TEST(IvfSweepCells, LimitsAreChecked) {
    IvfSweepIndex index;
    index.n = 100000;
    index.data = "uniform";
    index.shape.d = 100;
    index.shape.nlist = 100;
    const IvfSweepIndex::Search good{0, 10, 1000, 100};
    EXPECT_TRUE(isIvfSweepSearch(index, good));
    const auto with = [&](auto change) {
        IvfSweepIndex::Search other = good;
        change(other);
        return isIvfSweepSearch(index, other);
    };
    EXPECT_FALSE(with([](auto& s) { s.nprobe = 51; }));
    EXPECT_FALSE(with([](auto& s) { s.nprobe = 0; }));
    EXPECT_FALSE(with([](auto& s) { s.k = kMostIvfK + 1; }));
    EXPECT_FALSE(with([](auto& s) { s.q = kMostIvfQueries + 1; }));
    EXPECT_FALSE(with([](auto& s) { s.q = 20000, s.nprobe = 50; })); // pairs
    index.data = "sift";
    EXPECT_FALSE(with([](auto& s) { s.q = kSiftQueries + 1; }));
}

TEST(IvfData, IsOfItsKind) {
    constexpr int kD = 24;
    constexpr int64_t kCount = 1600;
    for (const std::string& name : ivfDataNames()) {
        SCOPED_TRACE(name);
        const auto x = makeIvfVectors(name, kCount, kD, 5);
        ASSERT_EQ(x.size(), size_t(kCount * kD));
        EXPECT_EQ(x, makeIvfVectors(name, kCount, kD, 5));
        EXPECT_NE(x, makeIvfVectors(name, kCount, kD, 6));
        std::set<std::vector<float>> distinct;
        for (int64_t i = 0; i < kCount; ++i) {
            distinct.emplace(x.begin() + i * kD, x.begin() + (i + 1) * kD);
        }
        EXPECT_EQ(distinct.size(), size_t(name == "duplicates" ? 100 : kCount));
        const double least = name == "far" ? 10 : name == "walk" ? -7 : -0.2;
        for (float value : x) {
            ASSERT_GE(value, least);
            ASSERT_LT(value, least + 20);
        }
    }
}

TEST(IvfData, ReadsFiles) {
    const std::string path = testing::TempDir() + "/ivf_data.bvecs";
    const auto write = [&](const std::string& bytes) {
        std::ofstream(path, std::ios::binary) << bytes;
    };
    const std::string head("\2\0\0\0", 4);
    write(head + "\7\377" + head + "AB");
    const FileVectors vectors = readVectors(path);
    EXPECT_EQ(vectors.d, 2);
    EXPECT_EQ(vectors.count(), 2);
    EXPECT_EQ(vectors.values, (std::vector<float>{7, 255, 65, 66}));
    for (const std::string& bad :
         {std::string(),
          head,
          head + "A",
          head + "AB" + head.substr(0, 3),
          head + "AB" + std::string("\1\0\0\0C", 5)}) {
        write(bad);
        EXPECT_THROW(readVectors(path), std::runtime_error) << bad.size();
    }
}

} // namespace
} // namespace faiss_bits::bench
