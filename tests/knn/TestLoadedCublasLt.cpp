/// Where products find their cuBLASLt: linked, and looked for at run time, with
/// libraries made up for the test. Needs no device.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/common/LoadedCublasLt.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits {

namespace {

using test::throwsNaming;

/// A library of the test's own, in a folder that the loader does not search.
std::string fake(const std::string& kind) {
    return FAKE_CUBLASLT_FOLDER "/libfake_cublaslt_" + kind + ".so";
}

TEST(LoadedCublasLt, LinkedAndLoadedAreTheSame) {
    const CublasLtCalls& linked = cublasLtCalls();
    const CublasLtCalls loaded = loadCublasLt(REAL_CUBLASLT);
    EXPECT_EQ(loaded.version, linked.version);
    EXPECT_EQ(loaded.create, linked.create);
    EXPECT_EQ(loaded.matmul, linked.matmul);
    EXPECT_EQ(loaded.algoCheck, linked.algoCheck);
    EXPECT_EQ(loaded.algoGet, linked.algoGet);
    EXPECT_EQ(loaded.algoSet, linked.algoSet);
    EXPECT_EQ(loaded.heuristic, linked.heuristic);
    EXPECT_EQ(loaded.descInit, linked.descInit);
    EXPECT_EQ(loaded.descSet, linked.descSet);
    EXPECT_EQ(loaded.preferenceInit, linked.preferenceInit);
    EXPECT_EQ(loaded.preferenceSet, linked.preferenceSet);
    EXPECT_EQ(loaded.layoutInit, linked.layoutInit);
    EXPECT_GE(loaded.version(), kLeastCublasLtVersion);
}

TEST(LoadedCublasLt, LoadsWhatIsNotLoadedAndLeavesItLoaded) {
    const std::string name = fake("new");
    ASSERT_EQ(dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr);
    EXPECT_EQ(loadCublasLt(name.c_str()).version(), 130000u);
    EXPECT_NE(dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr);
}

/// By the name that it has inside, as FAISS loads its own by a path.
TEST(LoadedCublasLt, FindsALoadedOneByItsName) {
    const char* name = "libfake_cublaslt_elsewhere.so";
    EXPECT_TRUE(throwsNaming([&] { (void)loadCublasLt(name); }, name));
    void* library = dlopen(fake("elsewhere").c_str(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_EQ(
            reinterpret_cast<void*>(loadCublasLt(name).matmul),
            dlsym(library, "cublasLtMatmul"));
}

TEST(LoadedCublasLt, SaysWhatWasLookedForAndWhatTheLoaderSaid) {
    const char* name = "libfaiss_bits_no_cublaslt.so.12";
    EXPECT_TRUE(throwsNaming(
            [&] { (void)loadCublasLt(name); },
            name,
            "cannot open shared object file"));
}

TEST(LoadedCublasLt, RefusesOneThatLacksAFunction) {
    const std::string name = fake("incomplete");
    EXPECT_TRUE(throwsNaming(
            [&] { (void)loadCublasLt(name.c_str()); }, "cublasLtMatmul", name));
}

TEST(LoadedCublasLt, RefusesAnOldOne) {
    const std::string name = fake("old");
    EXPECT_TRUE(throwsNaming(
            [&] { (void)loadCublasLt(name.c_str()); },
            "version",
            name + " of this process says that it is version 111103"));
}

} // namespace

} // namespace faiss_bits
