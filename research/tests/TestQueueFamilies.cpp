/// Both families of methods, the queues and partial bitonic sort, on every kind
/// of values and shape. What only one of them can get wrong is in
/// TestQueueSelect and TestQueueBitonic.

#include "research/tests/TestQueueHarness.h"

namespace faiss_bits::test {
namespace {

enum class Family { Queues, Bitonic };

const char* nameOf(Family family) {
    return family == Family::Queues ? "Queues" : "Bitonic";
}

std::vector<SelectMethod> familyMethods(Family family) {
    return family == Family::Queues ? namedQueueMethods()
                                    : methodsOf(bitonicSteps());
}

class QueueFamilyValues
        : public GpuTest,
          public ::testing::WithParamInterface<std::tuple<Family, Values>> {};

TEST_P(QueueFamilyValues, MatchOracle) {
    const auto [family, values] = GetParam();
    // Many rows: as many as keep the device busy with one block each.
    const int64_t manyRows = family == Family::Queues ? 300 : 600;
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{3, 4097}, {1, 60001}, {manyRows, 700}}) {
        for (DataType type : kKeyTypes) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = values;
            c.keyType = type;
            c.largest = (rows + int(type)) % 2 == 0;
            expectMethods(c, familyMethods(family), {1, 50, 700});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        QueueFamilyValues,
        ::testing::Combine(
                ::testing::Values(Family::Queues, Family::Bitonic),
                ::testing::ValuesIn(kAllValues)),
        [](const auto& info) {
            return std::string(nameOf(std::get<0>(info.param))) + "_" +
                    nameOf(std::get<1>(info.param));
        });

class QueueFamilyShapes : public GpuTest,
                          public ::testing::WithParamInterface<Family> {
   protected:
    static void expectFamily(
            const SelectCase& c,
            const std::vector<int>& ks,
            cudaStream_t stream = nullptr) {
        expectMethods(c, familyMethods(GetParam()), ks, stream);
    }
};

TEST_P(QueueFamilyShapes, EveryK) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{2, 6000}, {1, 100001}, {40, 2048}}) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        expectFamily(c, kSelectKs);
    }
}

TEST_P(QueueFamilyShapes, EveryCols) {
    for (int64_t cols : kSelectCols) {
        SelectCase c;
        c.rows = 3;
        c.cols = cols;
        c.values = Values::FewDistinct;
        expectFamily(c, {1, 32, 129, 1000});
    }
}

TEST_P(QueueFamilyShapes, NoColumns) {
    SelectCase c;
    c.rows = 3;
    c.cols = 0;
    expectFamily(c, {1, 40, 2048});
    c.keyType = DataType::Float16;
    c.largest = true;
    expectFamily(c, {40});
}

TEST_P(QueueFamilyShapes, StridesAndIds) {
    for (DataType type : kKeyTypes) {
        SelectCase c;
        c.rows = 5;
        c.cols = 4999;
        c.keyType = type;
        c.padding = 3;
        c.outPadding = 2;
        c.shift = 1;
        c.idOffset = 1000;
        c.idType = IdType::Int32;
        expectFamily(c, {1, 77, 500});
        c.padding = 1;
        c.shift = 4;
        c.idType = IdType::Int64;
        c.idOffset = (int64_t(1) << 33) + 5;
        expectFamily(c, {77});
    }
}

TEST_P(QueueFamilyShapes, NonDefaultStream) {
    TestStream stream;
    for (int64_t cols : {50000, 300000}) {
        SelectCase c;
        c.rows = 2;
        c.cols = cols;
        expectFamily(c, {1, 100, 2048}, stream);
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        QueueFamilyShapes,
        ::testing::Values(Family::Queues, Family::Bitonic),
        [](const auto& info) { return nameOf(info.param); });

} // namespace
} // namespace faiss_bits::test
