/// Which row of a tuning table a problem takes.

#include <gtest/gtest.h>

#include "kernels/select/SelectTable.h"

namespace faiss_bits::test {
namespace {

TEST(SelectTables, RowsOfTheDevicesOwnCapabilityCount) {
    constexpr auto Bits = SelectAlgorithm::Bits;
    constexpr auto Sort = SelectAlgorithm::Sort;
    constexpr auto Radix = SelectAlgorithm::RadixSelect;
    const SelectTableRow table[] = {
            {90, 4, kAnyRows, 1000, kAnyK, Bits},
            {90, 4, kAnyRows, kAnyCols, kAnyK, Sort},
            {90, 2, kAnyRows, kAnyCols, kAnyK, Sort},
            {80, 4, kAnyRows, 1000, kAnyK, Sort},
            {80, 4, kAnyRows, kAnyCols, kAnyK, Radix}};
    const auto any = [](SelectAlgorithm) { return true; };
    const auto chosen = [&](int capability, idx_t cols, DataType type) {
        SelectProblem p;
        p.rows = 1;
        p.cols = cols;
        p.k = 10;
        p.keyType = type;
        p.device.computeCapability = capability;
        const SelectTableRow* row = rowFor(table, p, any);
        return row ? row->algorithm : SelectAlgorithm::Auto;
    };
    EXPECT_EQ(chosen(90, 500, DataType::Float32), Bits);
    EXPECT_EQ(chosen(90, 5000, DataType::Float32), Sort);
    EXPECT_EQ(chosen(80, 500, DataType::Float32), Sort);
    EXPECT_EQ(chosen(80, 5000, DataType::Float32), Radix);
    EXPECT_EQ(chosen(80, 5000, DataType::BFloat16), Sort) << "none of its own";
    EXPECT_EQ(chosen(120, 500, DataType::Float32), Bits) << "the fallback";

    SelectProblem p;
    p.rows = 1;
    p.cols = 500;
    p.k = 10;
    p.device.computeCapability = 80;
    const SelectTableRow* other =
            rowFor(table, p, [](SelectAlgorithm one) { return one == Radix; });
    ASSERT_TRUE(other) << "the next row that fits";
    EXPECT_EQ(other->computeCapability, 80);
    EXPECT_EQ(other->algorithm, Radix);
}

} // namespace
} // namespace faiss_bits::test
