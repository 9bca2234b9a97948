/// The algorithms of runSelect that take any k, beyond 2048.

#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

class SelectAlgorithmLargeK : public GpuTest {};

/// Around the k at which an algorithm may change its ways, and around cols.
TEST_F(SelectAlgorithmLargeK, KBeyond2048) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{3, 5000}, {1, 70001}, {10, 20000}}) {
        const int n = int(cols);
        for (Values values : {Values::Random, Values::FewDistinct}) {
            for (bool largest : {false, true}) {
                SelectCase c;
                c.rows = rows;
                c.cols = cols;
                c.values = values;
                c.largest = largest;
                expectAllSelect(
                        c, {2049, 4096, 4097, n - 1, n, n + 1}, anyKMethods());
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Ties at the k-th place, NaN and infinities within the first k.
TEST_F(SelectAlgorithmLargeK, KBeyond2048OfEveryKindOfValue) {
    for (Values values : kAllValues) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            SelectCase c;
            c.rows = 2;
            c.cols = 30000;
            c.values = values;
            c.keyType = type;
            c.largest = type == DataType::Float16;
            expectAllSelect(c, {3000, 29000}, anyKMethods());
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(SelectAlgorithmLargeK, KOfAMillion) {
    SelectCase c;
    c.cols = 3 << 20;
    expectAllSelect(c, {1 << 20}, anyKMethods());
    c.values = Values::FewDistinct;
    expectAllSelect(c, {(1 << 20) + 1}, anyKMethods());
}

class EveryLargeKAlgorithm
        : public GpuTest,
          public ::testing::WithParamInterface<SelectMethod> {};

TEST_P(EveryLargeKAlgorithm, SmallLargeK) {
    SelectCase c;
    c.rows = 2;
    c.cols = 9001;
    expectAllSelect(c, {3000, 9000}, {GetParam()});
    c.values = Values::FewDistinct;
    expectAllSelect(c, {3000, 9002}, {GetParam()});
}

INSTANTIATE_TEST_SUITE_P(
        All,
        EveryLargeKAlgorithm,
        ::testing::ValuesIn(anyKMethods()),
        [](const auto& info) { return info.param.name; });

} // namespace
} // namespace faiss_bits::test
