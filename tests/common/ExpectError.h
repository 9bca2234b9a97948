#pragma once

#include <cctype>
#include <string>

#include <gtest/gtest.h>

#include "kernels/common/Error.h"

namespace faiss_bits::test {

/// True if `text` has `word` as a whole word.
inline bool hasWord(const std::string& text, const std::string& word) {
    auto isPart = [&](size_t i) {
        return i < text.size() &&
                (std::isalnum((unsigned char)text[i]) || text[i] == '_');
    };
    for (size_t at = text.find(word); at != std::string::npos;
         at = text.find(word, at + 1)) {
        const bool begins = at == 0 || !isPart(at - 1);
        if (begins && !isPart(at + word.size())) {
            return true;
        }
    }
    return false;
}

/// True if a message names the argument and, where given, tells its value.
inline ::testing::AssertionResult names(
        const std::string& text,
        const std::string& argument,
        const std::string& value) {
    if (!hasWord(text, argument)) {
        return ::testing::AssertionFailure()
                << "'" << text << "' does not name " << argument;
    }
    if (text.find(value) == std::string::npos) {
        return ::testing::AssertionFailure()
                << "'" << text << "' does not tell the value " << value;
    }
    return ::testing::AssertionSuccess();
}

/// True if `call` throws faiss_bits::Error with a message that names the
/// argument and, where given, its value.
template <class Call>
::testing::AssertionResult throwsNaming(
        Call&& call,
        const std::string& argument,
        const std::string& value = "") {
    try {
        call();
    } catch (const Error& error) {
        const std::string text = error.what();
        if (text.find("CUDA error") != std::string::npos) {
            return ::testing::AssertionFailure()
                    << "reached CUDA before the check: " << text;
        }
        return names(text, argument, value);
    } catch (const std::exception& error) {
        return ::testing::AssertionFailure()
                << "not a faiss_bits::Error: " << error.what();
    }
    return ::testing::AssertionFailure()
            << "nothing was thrown for a bad " << argument;
}

} // namespace faiss_bits::test
