#include <gtest/gtest.h>

#include "deepinfer/tokenizer.h"
#include "tests/support/tiny_tokenizer.h"

namespace deepinfer {
namespace {

const TinyTokenizer kTiny{.merges = {{"a", "b"}, {"ab", "c"}}, .added = {{"<x>"}, {"<y>", false, true}}};

struct BadFile {
  const char* from;  // replaced in the good file
  const char* to;
  const char* message;  // a part of it
};

const BadFile kBadFiles[] = {
    // The file as a whole
    {R"("version")", R"("surprise")", "unknown key \"surprise\" in file"},
    {R"("version":"1.0",)", R"("padding":null,)", "repeated key \"padding\" in file"},
    {R"("truncation":null)", R"("truncation":{"max_length":8})",
     "file.truncation = {\"max_length\":8} is not supported"},
    {R"("padding":null)", R"("padding":{"strategy":"BatchLongest"})", "file.padding"},
    {R"("post_processor":null)", R"("post_processor":{"type":"TemplateProcessing"})", "post_processor.type"},
    {R"("decoder":{"type":"ByteLevel")", R"("decoder":{"type":"Metaspace")", "decoder.type \"Metaspace\""},
    {R"("model":{)", R"("model":[{)", "not valid JSON"},
    // Normaliser
    {R"("normalizer":null)", R"("normalizer":{"type":"NFC"})", "normalizer = {\"type\":\"NFC\"} is not supported"},
    {R"("normalizer":null)", R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"}]})", "normalizer = "},
    // Pre-tokenizer
    {R"({1,3})", R"({1,2})", R"(pretokenizers[0].pattern.Regex "\p{N}{1,2}" is not supported)"},
    {R"([A-Za-z]+|)", R"([A-Z]+|)", "pretokenizers[2].pattern.Regex"},
    {R"("behavior":"Isolated")", R"("behavior":"Removed")", "behavior \"Removed\""},
    {R"("invert":false)", R"("invert":true)", "invert = true"},
    {R"({"Regex":"\\p{N}{1,3}"})", R"({"String":"x"})",
     "unknown key \"String\" in pre_tokenizer.pretokenizers[0].pattern"},
    {R"("add_prefix_space":false)", R"("add_prefix_space":true)", "add_prefix_space = true is not supported"},
    {R"("use_regex":false)", R"("use_regex":true)", "use_regex = true is not supported"},
    {R"({"type":"ByteLevel","add_prefix_space":false)", R"({"type":"Digits","add_prefix_space":false)", "\"Digits\""},
    {R"("pretokenizers":[)", R"("pretokenizers":[{"type":"Digits"},)", "has 5 stages"},
    // Model
    {R"("type":"BPE")", R"("type":"Unigram")", "model.type \"Unigram\" is not supported"},
    {R"("dropout":null)", R"("dropout":0.1)", "model.dropout = 0.1"},
    {R"("unk_token":null)", R"("unk_token":"<unk>")", "model.unk_token"},
    {R"("continuing_subword_prefix":null)", R"("continuing_subword_prefix":"##")", "model.continuing_subword_prefix"},
    {R"("end_of_word_suffix":null)", R"("end_of_word_suffix":"</w>")", "model.end_of_word_suffix"},
    {R"("fuse_unk":false)", R"("fuse_unk":true)", "model.fuse_unk"},
    {R"("byte_fallback":false)", R"("byte_fallback":true)", "model.byte_fallback = true"},
    {R"("ignore_merges":false)", R"("ignore_merges":true)", "model.ignore_merges = true"},
    {R"("vocab":{)", R"("words":{)", "unknown key \"words\" in model"},
    // Vocabulary
    {R"("abc":257)", R"("abc":256)", "id 256 has two tokens"},
    {R"("abc":257)", R"("ab":257)", "\"ab\" has two ids, 256 and 257"},
    {R"("abc":257)", R"("abc":-1)", "is -1, outside [0, 1048576)"},
    {R"("abc":257)", R"("abc":99999999)", "is 99999999, outside"},
    {R"("abc":257)", R"("abc":99999999999999999999)", "not valid JSON"},
    {R"("abc":257)", R"("abc":257.5)", "is not a whole number"},
    {R"("abc":257)", R"("abc":"257")", "is not a whole number"},
    {R"("abc":257)", R"("abc":260)", "id 257 has no token, but the highest id is 260"},
    {R"("abc":257)", R"("":257)", "an empty token"},
    {R"("b":98)", R"("bb":98)", "no token \"b\" for byte 98"},
    // Merges
    {R"("ab c")", R"("abc")", "model.merges[1] \"abc\" is not two tokens"},
    {R"("ab c")", R"("ab  c")", "model.merges[1] \"ab  c\" is not two tokens"},
    {R"("ab c")", R"("zz c")", "\"zz\" is not in model.vocab"},
    {R"("ab c")", R"("b c")", "\"bc\" is not in model.vocab"},
    {R"("ab c")", R"("a b")", "model.merges[1] \"a b\": given twice"},
    {R"("ab c")", R"(["ab"])", "model.merges[1] is neither"},
    {R"("ab c")", R"(7)", "model.merges[1] is neither"},
    {R"("ab c")", R"("<x >")", "\"<x\" is not in model.vocab"},
    // Added tokens
    {R"("content":"<x>")", R"("content":"<y>")", "\"<y>\" has two ids, 258 and 259"},
    {R"("content":"<x>")", R"("content":"ab")", "\"ab\" has two ids, 256 and 258"},
    {R"("content":"<x>")", R"("content":"")", "added_tokens[0].content has 0 bytes"},
    {R"("content":"<x>")", R"("content":"éé")", "\"éé\" would decode to other bytes"},
    {R"({"id":258)", R"({"id":257)", "id 257 has two tokens, \"abc\" and \"<x>\""},
    {R"({"id":258)", R"({"id":259)", "id 259 has two tokens, \"<x>\" and \"<y>\""},
    {R"({"id":258)", R"({"id":300)", "id 258 has no token"},
    {R"({"id":258)", R"({"id":-3)", "added_tokens[0].id is -3"},
    {R"("lstrip":false)", R"("lstrip":true)", "added_tokens[0].lstrip = true is not supported"},
    {R"("rstrip":false)", R"("rstrip":true)", "added_tokens[0].rstrip"},
    {R"("single_word":false)", R"("single_word":true)", "added_tokens[0].single_word"},
    {R"("special":true)", R"("special":1)", "added_tokens[0].special is not true or false"},
    {R"("normalized":false,)", "", "missing added_tokens[0].normalized"},
};

TEST(TokenizerFile, TakesTheGoodFile) { EXPECT_TRUE(Tokenizer::from_json(kTiny.json()).ok()); }

TEST(TokenizerFile, RefusesBadFilesByName) {
  for (const BadFile& bad : kBadFiles) {
    const auto tokenizer = Tokenizer::from_json(replaced(kTiny.json(), bad.from, bad.to));
    ASSERT_FALSE(tokenizer.ok()) << bad.to;
    EXPECT_EQ(tokenizer.error().code, Code::kBadModelFile);
    EXPECT_NE(tokenizer.error().message.find(bad.message), std::string::npos)
        << bad.to << "\n  gives: " << tokenizer.error().message;
  }
}

TEST(TokenizerFile, RefusesTruncationAnywhere) {
  const std::string json = kTiny.json();
  for (size_t n = 0; n < json.size(); n += 7) {
    const auto tokenizer = Tokenizer::from_json(std::string_view(json).substr(0, n));
    ASSERT_FALSE(tokenizer.ok()) << n;
    EXPECT_EQ(tokenizer.error().code, Code::kBadModelFile);
  }
}

TEST(TokenizerFile, RefusesAbsurdNestingAndOtherJson) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& json : {deep, std::string("[]"), std::string("null"), std::string("{}"), std::string("\xFF"),
                                  replaced(kTiny.json(), R"("normalizer":null)", R"("normalizer":)" + deep)}) {
    EXPECT_FALSE(Tokenizer::from_json(json).ok()) << json.substr(0, 20);
  }
}

TEST(TokenizerFile, NamesAMissingFile) {
  const auto tokenizer = Tokenizer::open("/nonexistent");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().code, Code::kBadModelFile);
  EXPECT_EQ(tokenizer.error().message, "/nonexistent/tokenizer.json: No such file or directory");
}

TEST(TokenizerFile, TakesMergesAsPairsAndEscapedLineEnds) {
  std::string json = replaced(kTiny.json(), R"("ab c")", R"(["ab","c"])");
  json = replaced(json, R"([^\\r\\n\\p{L})", R"([^\r\n\\p{L})");
  json = replaced(json, R"(+[\\r\\n]*)", R"(+[\r\n]*)");
  json = replaced(json, R"(\\s*[\\r\\n]+)", R"(\\s*[\r\n]+)");
  const auto tokenizer = Tokenizer::from_json(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("abc"), std::vector<int32_t>{257});
}

}  // namespace
}  // namespace deepinfer
