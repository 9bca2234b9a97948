/// Range searches by every metric: ids, order and bits.

#include "tests/range/FlatRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatRange : public GpuTest {};

struct OneMetric {
    Metric metric;
    float p = 0;
};

const std::vector<OneMetric> kEveryMetric = {
        {Metric::L2},
        {Metric::InnerProduct},
        {Metric::L1},
        {Metric::Linf},
        {Metric::Lp, 0.5f},
        {Metric::Lp, 1.0f},
        {Metric::Lp, 1.5f},
        {Metric::Lp, 2.0f},
        {Metric::Lp, 2.5f},
        {Metric::Lp, 3.0f},
        {Metric::Lp, 4.0f},
        {Metric::Cosine},
        {Metric::Canberra},
        {Metric::BrayCurtis},
        {Metric::JensenShannon},
        {Metric::Jaccard}};

RangeCase caseOf(const OneMetric& one) {
    RangeCase c;
    c.metric = one.metric;
    c.p = one.p;
    return c;
}

TEST_F(FlatRange, SearchesByEveryMetric) {
    for (const OneMetric& one : kEveryMetric) {
        RangeCase c = caseOf(one);
        c.n = 300;
        c.q = 17;
        c.d = 9;
        expectSelectivities(c);
    }
}

TEST_F(FlatRange, EveryMetricAndNumberOfQueries) {
    for (const OneMetric& one : kEveryMetric) {
        for (const int64_t q : {1, 2, 16, 17, 130}) {
            for (const int d : {1, 5, 20, 70}) {
                RangeCase c = caseOf(one);
                c.n = 1500;
                c.q = q;
                c.d = d;
                expectSelectivities(c);
            }
        }
    }
}

TEST_F(FlatRange, VectorsOfSixteenBits) {
    for (const DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (const OneMetric& one : kEveryMetric) {
            for (const int64_t q : {3, 40}) {
                RangeCase c = caseOf(one);
                c.dataType = type;
                c.q = q;
                c.exactQueries = one.metric != Metric::Cosine;
                expectSelectivities(c);
            }
        }
    }
}

TEST_F(FlatRange, TiesAtTheRadiusAreOut) {
    for (const OneMetric& one : kEveryMetric) {
        for (const int64_t q : {2, 40}) {
            RangeCase c = caseOf(one);
            c.q = q;
            c.d = 4;
            c.areFew = true;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRange, HardValues) {
    for (const OneMetric& one : kEveryMetric) {
        for (const Hard hard : kHard) {
            RangeCase c = caseOf(one);
            c.n = 1100;
            c.isHard = true;
            c.hard = hard;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRange, DifferencesBeyondFloat32) {
    for (const OneMetric& one : kEveryMetric) {
        for (const int d : {3, 32}) {
            RangeCase c = caseOf(one);
            c.n = 1100;
            c.d = d;
            c.isHard = true;
            c.hard = Hard::Ends;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRange, Filters) {
    for (const OneMetric& one : kEveryMetric) {
        for (const unsigned oneIn : {2u, 100u, 100000u}) {
            RangeCase c = caseOf(one);
            c.n = 2011;
            c.oneIn = oneIn;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRange, FewVectors) {
    for (const OneMetric& one :
         {OneMetric{Metric::L2}, {Metric::InnerProduct}, {Metric::L1}}) {
        for (const int64_t n : {1, 31, 32, 33, 1023, 1024, 1025}) {
            RangeCase c = caseOf(one);
            c.n = n;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRange, RadiusOfNoRange) {
    RangeCase c;
    const RangeData l2(c);
    for (const float radius : {-1.0f, -0.0f, 0.0f, -INFINITY}) {
        EXPECT_EQ(l2.expect(radius), 0);
    }
    c.metric = Metric::InnerProduct;
    EXPECT_EQ(RangeData(c).expect(-1.0f), c.n * c.q);
}

} // namespace
} // namespace faiss_bits::test
