#include "tests/dropin/DropinCodesHarness.h"

/// FAISS's scans of lists of codes on our kernels, with both kinds of lengths.
namespace faiss_bits::test {
namespace {

class DropinCodedLists : public GpuTest {};

// For compute-sanitizer (--gtest_filter=*Small*).
class DropinCodedListsSmall : public GpuTest {};

std::vector<CodedCase> kindsOf(CodedCase c) {
    std::vector<CodedCase> cases;
    for (Codes codes : {Codes::OfComponents, Codes::Uniform, Codes::Direct}) {
        for (bool residual : {true, false}) {
            c.codes = codes;
            c.residual = residual;
            cases.push_back(c);
        }
    }
    c.codes = Codes::Product;
    cases.push_back(c);
    return cases;
}

template <class Index>
void expectScan(const CodedCase& c) {
    CodedLists<Index> lists(c);
    ASSERT_NO_THROW(lists.call()) << c.describe();
    ASSERT_TRUE(lists.check());
}

void expectScans(const CodedCase& base) {
    for (bool isL2 : {true, false}) {
        for (bool interleaved : {true, false}) {
            CodedCase one = base;
            one.isL2 = isL2;
            one.interleaved = interleaved;
            for (const CodedCase& c : kindsOf(one)) {
                expectScan<int>(c);
                expectScan<int64_t>(c);
                for (size_t version : {1, 2}) {
                    CodedCase later = c;
                    later.version = version;
                    expectScan<int64_t>(later);
                }
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

// Fewer probes than lists, and more.
TEST_F(DropinCodedListsSmall, FewQueriesAndMany) {
    for (int64_t q : {1, 4, 5, 70}) {
        CodedCase c;
        c.q = q;
        expectScans(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(DropinCodedListsSmall, ByEstimates) {
    CodedCase c;
    c.q = 300;
    c.n = 20000;
    c.nprobe = 12;
    expectScans(c);
}

TEST_F(DropinCodedLists, OddDimensions) {
    for (int d : {1, 33, 130}) {
        CodedCase c;
        c.d = d;
        c.parts = d % 2 ? d : d / 2;
        c.q = 40;
        c.k = 100;
        expectScans(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(DropinCodedLists, FewVectorsAndNone) {
    for (int64_t n : {0, 1, 33}) {
        for (int64_t q : {0, 2, 90}) {
            CodedCase c;
            c.n = n;
            c.q = q;
            expectScans(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// There is no FAISS to go to.
template <class Index>
void expectRefused(const CodedCase& c, Wrong wrong) {
    CodedLists<Index> lists(c);
    EXPECT_THROW(lists.call(wrong), std::runtime_error)
            << c.describe() << " wrong " << int(wrong);
    EXPECT_TRUE(lists.isUntouched()) << c.describe();
}

TEST_F(DropinCodedLists, WhatIsNotAsKnownIsLeftToFaiss) {
    for (bool interleaved : {true, false}) {
        CodedCase c;
        c.interleaved = interleaved;
        for (Wrong wrong :
             {Wrong::Dimensions,
              Wrong::Bits,
              Wrong::CodeSize,
              Wrong::Trained,
              Wrong::Ranges,
              Wrong::Memory,
              Wrong::Type,
              Wrong::Bases}) {
            for (size_t version : {0, 1, 2}) {
                c.version = version;
                expectRefused<int>(c, wrong);
                expectRefused<int64_t>(c, wrong);
            }
        }
        // Only 1.15 is laid out so, whose lengths have 64 bits.
        c.version = 1;
        expectRefused<int>(c, Wrong::Nothing);
        c.codes = Codes::Product;
        for (Wrong wrong :
             {Wrong::Codebook, Wrong::Centroids, Wrong::BitsOfCodes}) {
            expectRefused<int>(c, wrong);
            expectRefused<int64_t>(c, wrong);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
