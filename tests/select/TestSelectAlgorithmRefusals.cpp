/// What the methods of the program refuse, how they say so, and how much
/// scratch they want. None makes a CUDA call: the devices are hidden before the
/// first one.

#include <cstdlib>

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "tests/common/ExpectError.h"
#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

class SelectAlgorithmRefusals : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    static void* nowhere() {
        return reinterpret_cast<void*>(uintptr_t(1) << 20);
    }

    static SelectProblem goodProblem() {
        SelectProblem p;
        p.rows = 4;
        p.cols = 1000000;
        p.k = 100;
        p.keys = p.outKeys = p.outIds = nowhere();
        return p;
    }

    /// Size query and run say the same.
    static void expectThrows(
            const SelectMethod& method,
            const SelectProblem& p,
            const std::string& name,
            const std::string& text) {
        EXPECT_TRUE(throwsNaming(
                [&] { (void)method.workspaceBytes(p); }, name, text));
        expectRunThrows(method, p, name, text);
    }

    static void expectRunThrows(
            const SelectMethod& method,
            const SelectProblem& p,
            const std::string& name,
            const std::string& text = "") {
        EXPECT_TRUE(throwsNaming(
                [&] {
                    method.run(p, {nowhere(), size_t(1) << 50}, nullptr);
                },
                name,
                text));
    }
};

TEST_F(SelectAlgorithmRefusals, NameTheMethodAndTheReason) {
    for (const SelectMethod& method : contractMethods()) {
        SCOPED_TRACE(method.name);
        SelectProblem p = goodProblem();
        EXPECT_EQ(refusalOf(method, p), "");
        p.k = kMaxSelectK;
        EXPECT_EQ(refusalOf(method, p), "");
        p.k = kMaxSelectK + 1;
        if (method.anyK) {
            EXPECT_EQ(refusalOf(method, p), "");
        } else {
            expectThrows(method, p, method.name, "k = 2049");
        }
        p.k = 100;
        p.ids = nowhere();
        if (method.idsAndBiases) {
            EXPECT_EQ(refusalOf(method, p), "") << "given ids";
        } else {
            expectThrows(method, p, method.name, "ids");
        }
        p.ids = nullptr;
        p.colBias = static_cast<float*>(nowhere());
        if (method.idsAndBiases) {
            EXPECT_EQ(refusalOf(method, p), "") << "biases";
        } else {
            expectThrows(method, p, method.name, "biases");
        }
    }
}

/// Only ids, biases and k may be refused, never a type or a direction.
TEST_F(SelectAlgorithmRefusals, EveryTypeAndDirectionIsTaken) {
    for (const SelectMethod& method : contractMethods()) {
        SelectProblem p = goodProblem();
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            for (int bits = 0; bits < 8; ++bits) {
                p.keyType = type;
                p.largest = bits & 1;
                p.sorted = bits & 2;
                p.idType = bits & 4 ? IdType::Int32 : IdType::Int64;
                EXPECT_EQ(refusalOf(method, p), "")
                        << method.name << " " << nameOf(type) << " " << bits;
            }
        }
    }
}

/// Every method checks its arguments as runSelect does (TestSelectArguments).
TEST_F(SelectAlgorithmRefusals, BadArgumentsAreNamed) {
    for (const SelectMethod& method : contractMethods()) {
        SCOPED_TRACE(method.name);
        for (int k : {0, -1}) {
            SelectProblem p = goodProblem();
            p.k = k;
            expectThrows(method, p, "k", std::to_string(k));
        }
        SelectProblem p = goodProblem();
        p.rows = -1;
        expectThrows(method, p, "rows", "-1");
        p = goodProblem();
        p.cols = kMaxSelectCols + 1;
        expectThrows(method, p, "cols", std::to_string(p.cols));
        p = goodProblem();
        p.rowStride = 17;
        expectThrows(method, p, "rowStride", "17");
        p = goodProblem();
        p.keys = nullptr;
        expectRunThrows(method, p, "keys");
        p = goodProblem();
        p.outIds = nullptr;
        expectRunThrows(method, p, "outIds");
        p = goodProblem();
        p.outStride = 99;
        expectRunThrows(method, p, "outStride", "99");
    }
}

TEST_F(SelectAlgorithmRefusals, NoRowsNeedNothing) {
    for (const SelectMethod& method : contractMethods()) {
        SelectProblem p = goodProblem();
        p.rows = 0;
        EXPECT_EQ(method.workspaceBytes(p), 0u) << method.name;
        p.keys = p.outKeys = p.outIds = nullptr;
        EXPECT_NO_THROW(method.run(p, {}, nullptr)) << method.name;
    }
}

/// A method needs no more than a few copies of keys, ids and result.
TEST_F(SelectAlgorithmRefusals, ScratchIsBounded) {
    const std::pair<int64_t, int64_t> shapes[] = {
            {1, 100}, {1, kMaxSelectCols}, {1024, 1 << 20}, {100000, 100}};
    for (const SelectMethod& method : contractMethods()) {
        for (auto [rows, cols] : shapes) {
            for (int k : {1, 2048, 65536}) {
                SelectProblem p = goodProblem();
                p.rows = rows;
                p.cols = cols;
                p.k = k;
                if (k > kMaxSelectK && !method.anyK) {
                    continue;
                }
                const double bound =
                        64.0 * double(rows) * double(cols + k) + (64 << 20);
                EXPECT_LT(double(method.workspaceBytes(p)), bound)
                        << method.name << " " << rows << " x " << cols
                        << " k=" << k;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
