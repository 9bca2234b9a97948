/// Every metric, type and variant on every instruction set that this machine
/// has, at sizes on both sides of every edge.

#include <algorithm>
#include <cctype>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

/// One of many shapes: 7 x 8 x 10 x 9 sizes, shuffled, with a layout, blocks
/// and a number of threads each.
struct ShapeCase {
    CpuCase c;
    cpu::Choice choice;
    int threads = 1;
};

std::vector<ShapeCase> allShapes() {
    std::vector<ShapeCase> shapes;
    std::mt19937 random(11);
    auto pick = [&](const auto& list) { return list[random() % list.size()]; };
    const std::vector<double> powers = {3, 0.5, 1.5, 4, 1, 2};
    const std::vector<int> queryBlocks = {0, 0, 1, 12, 24};
    const std::vector<int> vectorBlocks = {0, 0, 1, 16, 48, 64};
    const std::vector<int> depthBlocks = {0, 0, 1, 16, 50};
    for (int64_t q : {0, 1, 2, 11, 12, 13, 25}) {
        for (int64_t n : {0, 1, 15, 16, 17, 31, 33, 500}) {
            for (int d : {1, 2, 3, 4, 8, 15, 16, 17, 33, 129}) {
                for (int64_t k : std::vector<int64_t>{
                             1, 2, 15, 16, 17, n - 1, n, n + 1, 2 * n}) {
                    ShapeCase shape;
                    shape.c.q = q;
                    shape.c.n = n;
                    shape.c.d = d;
                    shape.c.k = std::max<int64_t>(k, 1);
                    shape.c.metricArg = pick(powers);
                    shape.c.contents = pick(std::vector<Contents>{
                            Contents::Integers,
                            Contents::FewDistinct,
                            Contents::Uniform});
                    shape.c.queryGap = random() % 4 ? 0 : 1 + random() % 9;
                    shape.c.vectorGap = random() % 4 ? 0 : 1 + random() % 9;
                    shape.c.pickQueries = random() % 4 == 0;
                    shape.c.pickVectors = random() % 4 == 0;
                    shape.c.seed = random();
                    shape.choice.queryBlock = pick(queryBlocks);
                    shape.choice.vectorBlock = pick(vectorBlocks);
                    shape.choice.depthBlock = pick(depthBlocks);
                    shape.threads = 1 + random() % 3;
                    shapes.push_back(shape);
                }
            }
        }
    }
    for (size_t i = shapes.size() - 1; i > 0; --i) {
        std::swap(shapes[i], shapes[random() % (i + 1)]);
    }
    return shapes;
}

template <class T>
void expectRight(const CpuCase& c, cpu::Choice choice, int threads) {
    const CpuData<T> data(c);
    for (const cpu::Choice& forced : choicesOf(choice.variant)) {
        choice.target = forced.target;
        ASSERT_TRUE(data.check(data.run(choice, threads)))
                << describe(choice, threads);
    }
}

using Combination = std::tuple<Metric, cpu::Variant>;

class CpuShapes : public ::testing::TestWithParam<Combination> {};

/// Every combination takes another part of the shapes; together they take
/// each more than once.
TEST_P(CpuShapes, AgreeWithTheReference) {
    const auto [metric, variant] = GetParam();
    static const std::vector<ShapeCase> shapes = allShapes();
    const size_t combinations = kCpuMetrics.size() * kCpuVariants.size();
    const size_t self = size_t(metric) * kCpuVariants.size() + size_t(variant);
    for (size_t i = self; i < shapes.size(); i += combinations) {
        for (bool isFloat : {true, false}) {
            // The other type takes the part of another combination.
            ShapeCase shape = shapes[isFloat ? i : shapes.size() - 1 - i];
            shape.c.metric = metric;
            shape.choice.variant = variant;
            SCOPED_TRACE(isFloat ? "float" : "double");
            if (isFloat) {
                expectRight<float>(shape.c, shape.choice, shape.threads);
            } else {
                expectRight<double>(shape.c, shape.choice, shape.threads);
            }
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuShapes,
        ::testing::Combine(
                ::testing::ValuesIn(kCpuMetrics),
                ::testing::ValuesIn(kCpuVariants)),
        [](const auto& info) {
            std::string name = nameOf(std::get<1>(info.param));
            name[0] = char(std::toupper(name[0]));
            return metricName(std::get<0>(info.param)) + name;
        });

} // namespace
} // namespace faiss_bits::test
