// Splits Python text into tokens, with INDENT and DEDENT. Called by the parser.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "script/source.h"

namespace prong::script {

enum class TokenKind : uint8_t {
  kName,
  kKeyword,
  kInt,
  kFloat,
  kString,   // value: the decoded text
  kFString,  // value: the raw inner text; see Parser::fstring
  kOperator,
  kNewline,
  kIndent,
  kDedent,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Range range;
  std::string
      value;  // name, keyword, operator; digits of a number without underscores; text of a string
  uint32_t inner = 0;  // of an f-string: offset of its first inner character
  bool raw = false;    // of an f-string: backslashes stand for themselves
  bool is(std::string_view op) const {
    return (kind == TokenKind::kOperator || kind == TokenKind::kKeyword) && value == op;
  }
};

struct Tokens {
  std::vector<Token> items;            // the last one is kEnd
  std::map<int, Range> type_comments;  // by line: what follows "# type:"
};

// [begin, end) of the source's text. `nested`: an expression inside an f-string; no NEWLINE or
// INDENT in it.
Tokens tokenize(const SourcePtr& source, size_t begin, size_t end, bool nested = false);
// Decodes the escapes of a string's inner text.
std::string unescape(std::string_view inner, const Range& range);

}  // namespace prong::script
