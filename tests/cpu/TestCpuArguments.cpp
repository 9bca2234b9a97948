/// Bad arguments are named with their value, before anything is written.

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/ExpectError.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuArguments : public ::testing::Test {
   protected:
    using Problem = cpu::KnnProblem<float>;
    using Change = std::function<void(Problem&)>;

    CpuArguments()
            : vectors(200, 1.f),
              queries(60, 1.f),
              distances(60, -1.f),
              ids(60, -9) {
        good.numVectors = 50;
        good.numQueries = 15;
        good.d = 4;
        good.k = 3;
        good.vectors = vectors.data();
        good.queries = queries.data();
        good.outDistances = distances.data();
        good.outIds = ids.data();
    }

    ~CpuArguments() override {
        for (size_t i = 0; i < ids.size(); ++i) {
            EXPECT_EQ(distances[i], -1.f) << "an output was written";
            EXPECT_EQ(ids[i], -9) << "an output was written";
        }
    }

    Problem changed(const Change& change) const {
        Problem p = good;
        change(p);
        return p;
    }

    /// Both searches refuse it, whatever the variant.
    void expectBad(
            const Change& change,
            const char* name,
            const std::string& value = "") {
        for (cpu::Variant variant : kCpuVariants) {
            SCOPED_TRACE(nameOf(variant));
            Problem p = good;
            p.choice.variant = variant;
            change(p);
            EXPECT_TRUE(throwsNaming([&] { cpu::runKnn(p); }, name, value));
        }
    }

    void expectBadRange(
            const Change& change,
            const char* name,
            const std::string& value = "") {
        expectBad(change, name, value);
        const Problem p = changed(change);
        EXPECT_TRUE(throwsNaming(
                [&] { (void)cpu::runRange<float>(p, 1); }, name, value));
    }

    /// And the plan, which sees no array.
    void expectBadShape(
            const Change& change,
            const char* name,
            const std::string& value) {
        expectBadRange(change, name, value);
        expectBadPlan(change, name, value);
    }

    void expectBadPlan(
            const Change& change,
            const char* name,
            const std::string& value) {
        Problem p = changed(change);
        p.vectors = p.queries = nullptr;
        p.outDistances = nullptr;
        p.outIds = nullptr;
        EXPECT_TRUE(throwsNaming([&] { (void)cpu::planKnn(p); }, name, value));
    }

    std::vector<float> vectors;
    std::vector<float> queries;
    std::vector<float> distances;
    std::vector<idx_t> ids;
    Problem good;
};

TEST_F(CpuArguments, BadK) {
    for (idx_t k : {idx_t(0), idx_t(-5), std::numeric_limits<idx_t>::min()}) {
        auto change = [k](Problem& p) { p.k = k; };
        expectBad(change, "k", std::to_string(k));
        expectBadPlan(change, "k", std::to_string(k));
    }
}

TEST_F(CpuArguments, BadD) {
    for (int d : {0, -1, std::numeric_limits<int>::min()}) {
        expectBadShape([d](Problem& p) { p.d = d; }, "d", std::to_string(d));
    }
}

TEST_F(CpuArguments, BadNumbers) {
    for (idx_t n : {idx_t(-1), idx_t(1) << 31, idx_t(1) << 40}) {
        expectBadShape(
                [n](Problem& p) { p.numVectors = n; },
                "numVectors",
                std::to_string(n));
    }
    expectBadShape([](Problem& p) { p.numQueries = -2; }, "numQueries", "-2");
    expectBadShape([](Problem& p) { p.threads = -3; }, "threads", "-3");
}

TEST_F(CpuArguments, BadMetric) {
    expectBadShape(
            [](Problem& p) { p.metric = static_cast<Metric>(17); },
            "metric",
            "17");
}

TEST_F(CpuArguments, BadMode) {
    for (int mode : {3, 255}) {
        expectBadShape(
                [mode](Problem& p) { p.mode = static_cast<SearchMode>(mode); },
                "mode",
                std::to_string(mode));
    }
}

TEST_F(CpuArguments, BadPower) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (float power : {0.f, -1.f, nan, infinity}) {
        auto change = [power](Problem& p) {
            p.metric = Metric::Lp;
            p.metricArg = power;
        };
        expectBadShape(
                change,
                "metricArg",
                std::isnan(power)           ? "nan"
                        : std::isinf(power) ? "inf"
                                            : std::to_string(int(power)));
    }
    // Not read for other metrics.
    good.metricArg = nan;
    std::vector<float> outDistances(60);
    std::vector<idx_t> outIds(60);
    Problem p = good;
    p.outDistances = outDistances.data();
    p.outIds = outIds.data();
    EXPECT_NO_THROW(cpu::runKnn(p));
}

TEST_F(CpuArguments, BadStrides) {
    for (idx_t stride : {idx_t(3), idx_t(1), idx_t(-4)}) {
        expectBadShape(
                [stride](Problem& p) { p.queryStride = stride; },
                "queryStride",
                std::to_string(stride));
        expectBadShape(
                [stride](Problem& p) { p.vectorStride = stride; },
                "vectorStride",
                std::to_string(stride));
    }
}

TEST_F(CpuArguments, NullArrays) {
    expectBadRange([](Problem& p) { p.queries = nullptr; }, "queries");
    expectBadRange([](Problem& p) { p.vectors = nullptr; }, "vectors");
    expectBad([](Problem& p) { p.outDistances = nullptr; }, "outDistances");
    expectBad([](Problem& p) { p.outIds = nullptr; }, "outIds");
}

TEST_F(CpuArguments, NegativeIds) {
    std::vector<idx_t> rows(50, 3);
    rows[14] = -6; // the last query
    expectBadRange(
            [&](Problem& p) { p.queryIds = rows.data(); }, "queryIds", "-6");
    rows[14] = 3;
    rows[49] = -8;
    expectBadRange(
            [&](Problem& p) { p.vectorIds = rows.data(); }, "vectorIds", "-8");
}

TEST_F(CpuArguments, BadChoices) {
    expectBadShape(
            [](Problem& p) {
                p.choice.variant = static_cast<cpu::Variant>(99);
            },
            "variant",
            "99");
    expectBadShape(
            [](Problem& p) { p.choice.queryBlock = -1; }, "queryBlock", "-1");
    expectBadShape(
            [](Problem& p) { p.choice.vectorBlock = -2; }, "vectorBlock", "-2");
    expectBadShape(
            [](Problem& p) { p.choice.depthBlock = -3; }, "depthBlock", "-3");
    for (int arithmetic : {int(cpu::Arithmetic::Doubles) + 1, 255}) {
        expectBadShape(
                [arithmetic](Problem& p) {
                    p.choice.arithmetic = cpu::Arithmetic(arithmetic);
                },
                "arithmetic",
                std::to_string(arithmetic));
    }
}

/// Only two variants append what lies under a radius.
TEST_F(CpuArguments, RangeSearchRefusesTheVariantsOfHeaps) {
    for (cpu::Variant variant :
         {cpu::Variant::Var1, cpu::Variant::Var5, cpu::Variant::Var6}) {
        Problem p = good;
        p.choice.variant = variant;
        EXPECT_TRUE(throwsNaming(
                [&] { (void)cpu::runRange<float>(p, 1); },
                "variant",
                nameOf(variant)));
    }
}

TEST_F(CpuArguments, UnknownTargetNamesTheKnownOnes) {
    for (const char* name : {"Z80", "avx2 ", "AUTO"}) {
        auto change = [name](Problem& p) { p.choice.target = name; };
        expectBadShape(change, "target", name);
        for (const std::string& known : cpu::targetNames()) {
            expectBadShape(change, "target", known);
        }
    }
}

/// Messages name the same things for double.
TEST_F(CpuArguments, DoublesAreCheckedToo) {
    cpu::KnnProblem<double> p;
    p.numVectors = 5;
    p.numQueries = 2;
    p.d = 4;
    p.k = 0;
    EXPECT_TRUE(throwsNaming([&] { cpu::runKnn(p); }, "k", "0"));
    p.k = 1;
    EXPECT_TRUE(throwsNaming([&] { cpu::runKnn(p); }, "queries"));
    p.metric = Metric::Lp;
    p.metricArg = -2;
    EXPECT_TRUE(throwsNaming(
            [&] { (void)cpu::runRange<double>(p, 1); }, "metricArg", "-2"));
}

} // namespace
} // namespace faiss_bits::test
