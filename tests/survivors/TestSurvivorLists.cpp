/// Lists of entries to results where no key lies in memory: what a search whose
/// distances are never written hands on.

#include "tests/survivors/SurvivorSortHarness.h"

namespace faiss_bits::test {
namespace {

class SurvivorLists : public GpuTest {};

SortCase listCase() {
    SortCase c;
    c.hasKeys = false;
    c.bySort = false;
    c.tellCols = false;
    return c;
}

/// Both sides of every size that decides how a row is finished.
const std::vector<int> kSmallKs = {1, 10, 32, 33, 512, 513, 1025, 2048};
const std::vector<int> kLargeKs = {2049, 5000, 20000};

void expectAll(const SortCase& c, const std::vector<int>& ks) {
    const SortData data(c);
    for (int k : ks) {
        data.expectSorts(k);
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(SurvivorLists, EveryValueAndType) {
    for (Values values : kAllValues) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            SortCase c = listCase();
            c.rows = 4;
            c.cols = 15000;
            c.counts = {9000, 3, 2100, 14999};
            c.values = values;
            c.keyType = type;
            c.largest = type == DataType::Float16;
            expectAll(c, kSmallKs);
            expectAll(c, kLargeKs);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Empty lists, lists shorter than k, and the empty places that follow.
TEST_F(SurvivorLists, CountsOfManySizes) {
    for (bool largest : {false, true}) {
        SortCase c = listCase();
        c.rows = 12;
        c.cols = 20000;
        c.counts = {0, 1, 31, 32, 33, 2047, 2048, 2049, 8192, 8193, 0, 19999};
        c.largest = largest;
        c.idType = largest ? IdType::Int32 : IdType::Int64;
        c.firstRow = largest ? 2 : 0;
        expectAll(c, kSmallKs);
        expectAll(c, kLargeKs);
    }
}

TEST_F(SurvivorLists, NanIsNoCandidate) {
    for (Values values : {Values::SomeNan, Values::AllNan, Values::Random}) {
        for (bool sorted : {true, false}) {
            SortCase c = listCase();
            c.rows = 3;
            c.cols = 12000;
            c.counts = {10000, 50, 12000};
            c.values = values;
            c.dropNan = true;
            c.sorted = sorted;
            expectAll(c, {1, 60, 2048, 2049, 12000});
        }
    }
}

/// What a list had no room for is lost: the result is that of the rest.
TEST_F(SurvivorLists, CountsAboveTheCapacity) {
    for (int64_t lost : {1, 100000}) {
        SortCase c = listCase();
        c.rows = 3;
        c.cols = 9000;
        c.counts = {7000};
        c.capacity = 7000;
        c.lost = lost;
        expectAll(c, {1, 100, 2048, 2049, 6999, 7001});
    }
}

TEST_F(SurvivorLists, LimitsAndGivenIds) {
    for (Values values :
         {Values::Random, Values::FewDistinct, Values::AllEqual}) {
        SortCase c = listCase();
        c.rows = 3;
        c.cols = 12000;
        c.counts = {10000, 2500, 40};
        c.values = values;
        c.limits = true;
        c.givenIds = true;
        c.idType = values == Values::Random ? IdType::Int32 : IdType::Int64;
        expectAll(c, kSmallKs);
        expectAll(c, kLargeKs);
    }
}

/// Special keys from memory, by blocks as by the sort.
TEST_F(SurvivorLists, SpecialKeysFromMemory) {
    for (Values values : {Values::SignedZeros, Values::SomeNan}) {
        SortCase c = listCase();
        c.hasKeys = true;
        c.rows = 3;
        c.cols = 9000;
        c.counts = {8000, 9000};
        c.values = values;
        c.firstRow = 1;
        expectAll(c, {1, 100, 2048, 2049, 8500});
    }
}

TEST_F(SurvivorLists, ManyRows) {
    SortCase c = listCase();
    c.rows = 3000;
    c.cols = 900;
    c.counts = {800, 120, 0, 900};
    expectAll(c, {10, 100, 1000});
}

TEST_F(SurvivorLists, SmallLists) {
    SortCase c = listCase();
    c.rows = 3;
    c.cols = 5000;
    c.counts = {4000, 7, 0};
    c.values = Values::SomeNan;
    expectAll(c, {1, 40, 2048, 2049});
    c.lost = 5;
    c.dropNan = true;
    c.limits = true;
    c.givenIds = true;
    expectAll(c, {10, 600, 3000});
}

TEST_F(SurvivorLists, BadArgumentsAreNamed) {
    SurvivorList list;
    list.rows = 1;
    list.capacity = 10;
    SurvivorOutput output;
    output.k = 5;
    const auto message = [&] {
        try {
            runSurvivors(list, output, nullptr, {}, nullptr);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(message().find("entries"), std::string::npos);
    list.capacity = kMaxSurvivors + 1;
    EXPECT_NE(message().find("capacity"), std::string::npos);
    EXPECT_THROW(survivorSortWorkspaceBytes(1, list.capacity), Error);
    list.capacity = 10;
    output.k = 0;
    EXPECT_NE(message().find("k = 0"), std::string::npos);
    list.rows = 0;
    output.k = 5;
    EXPECT_EQ(message(), "") << "no rows, nothing to do";
}

} // namespace
} // namespace faiss_bits::test
