#include "search_text/generate.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace todoke::bench {
namespace {

constexpr std::size_t kEnglishWords = 30'000;

struct Vocabulary {
  std::string_view nouns;
  std::string_view particles;
  std::string_view verbs;
};

constexpr Vocabulary kJapanese{
    "今日 仕事 時間 日本 友達 写真 料理 猫 犬 雨 海 山 花 本 人 水 映画 音楽 天気 旅行 電車 学校 会社 先生 "
    "学生 世界 "
    "明日 昨日 自分 家族 子供 東京 大阪 京都 東京+都 京都+府 大阪+府 日本+語 図書+館 美術+館 新幹線 自転車 "
    "飛行機 誕生日 "
    "コーヒー ラーメン スマホ アプリ サーバー リレー データ ネットワーク インターネット プログラム ユーザー "
    "メッセージ "
    "タイムライン フォロー 電話 季節 空港 病院 大学 政治 経済 社会 技術 科学 情報 通信 開発 設計 会議 問題 "
    "結果 計画 "
    "動物 植物 自然 環境 研究 文化 歴史 言語 意味 方法 理由 最近 最初 最後 以前 健康 運動 野球 選手 試合 "
    "部屋 建物 道路 公園 "
    "商品 価格 市場 銀行 投稿 返信 画像 動画 設定 検索 更新 削除 公開 登録 人工+知能 情報+技術 環境+問題 "
    "経済+政策 "
    "国際+空港 自然+言語+処理 東京+大学 日本+銀行 社会+科学 開発+環境 検索+結果 研究+会議 推し活 界隈 神回 "
    "呪術廻戦",
    "は が を に で と も の へ から まで より だけ",
    "食べた 行きます 見ている 思います 作りました 読んだ 使っている 始まる 終わった 買いました 歩いている "
    "話していた "
    "書いています 忘れていた 楽しみです 面白かった 美しい 考えてみた 出かけました 届いた 増えている "
    "減らしたい"};

constexpr Vocabulary kChinese{
    "今天 时间 工作 朋友 中国 北京 上海 学校 公司 老师 学生 家庭 孩子 电影 音乐 天气 旅行 机场 医院 大学 "
    "政治 经济 "
    "社会 技术 科学 信息 开发 设计 会议 问题 结果 计划 明天 世界 历史 文化 语言 方法 原因 健康 运动 比赛 "
    "房间 道路 公园 "
    "商品 价格 市场 银行 猫 狗 山 海 花 书 图书+馆 飞机 火车 手机 电脑 网络 照片 视频 人工+智能 北京+大学 "
    "信息+技术 "
    "经济+政策 环境+保护 中国+银行 自然+语言+处理 搜索+结果 国际+机场",
    "的 了 在 和 是 我 你 他们 我们 很 不 都 也 就 对 给 把",
    "喜欢 学习 认为 看到 觉得 开始 结束 购买 使用 写完 吃饭 出发 回来 讨论 发现 需要 希望 打算 告诉 忘记"};

constexpr Vocabulary kKorean{
    "오늘 시간 친구 한국 서울 부산 회사 학교 학생 선생 가족 아이 영화 음악 날씨 여행 공항 병원 대학 정치 "
    "경제 사회 기술 "
    "과학 정보 개발 회의 문제 결과 계획 내일 세계 역사 문화 언어 방법 이유 건강 운동 경기 방 도로 공원 상품 "
    "가격 시장 은행 "
    "고양이 강아지 커피 사진 인터넷 프로그램 사용자 메시지 인공+지능 정보+기술 서울+대학교 환경+문제 "
    "경제+정책 자연+언어+처리 "
    "검색+결과 국제+공항",
    "은 는 이 가 을 를 에 에서 으로 도 와 의 까지 부터",
    "갔습니다 먹었다 봅니다 생각합니다 만들었다 시작했다 좋아요 재미있다 읽었어요 샀습니다 걷고 있다 말했다 "
    "잊어버렸다"};

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, by);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::string without_plus(std::string word) {
  std::erase(word, '+');
  return word;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void append_utf8(std::string& out, char32_t c) {
  out.push_back(static_cast<char>(0xE0 | (c >> 12)));
  out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
  out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
}

// A word that looks English: syllables, chosen by its number alone.
std::string made_up(std::size_t number) {
  static const auto syllables =
      split("ba co di fu ga he in jo ka le mi no op pa qu re sa ti un va wo ex ya ze sh th", ' ');
  std::string word;
  number += 26;
  for (; number > 0; number /= syllables.size()) word += syllables[number % syllables.size()];
  return word;
}

}  // namespace

std::string_view name_of(Language language) {
  switch (language) {
    case Language::english:
      return "English";
    case Language::japanese:
      return "Japanese";
    case Language::chinese:
      return "Chinese";
    case Language::korean:
      return "Korean";
  }
  return "";
}

PostGenerator::PostGenerator(Language language, std::uint64_t seed, double unknown)
    : language_(language), random_(seed), unknown_(unknown) {
  if (language == Language::english) {
    for (std::size_t i = 0; i < kEnglishWords; ++i) nouns_.push_back(made_up(i));
    return;
  }
  const auto& vocabulary = language == Language::japanese  ? kJapanese
                           : language == Language::chinese ? kChinese
                                                           : kKorean;
  nouns_ = split(vocabulary.nouns, ' ');
  particles_ = split(vocabulary.particles, ' ');
  verbs_ = split(vocabulary.verbs, ' ');
  for (const auto& noun : nouns_) {
    const auto parts = split(noun, '+');
    for (const auto& part : parts) {
      if (characters(part) == 2) two_characters_.push_back(part);
    }
    if (parts.size() > 1) compounds_.push_back(without_plus(noun));
  }
  std::sort(two_characters_.begin(), two_characters_.end());
  two_characters_.erase(std::unique(two_characters_.begin(), two_characters_.end()), two_characters_.end());
}

// Few words are frequent and most are rare, as in real text.
std::size_t PostGenerator::skewed(std::size_t size) {
  const auto uniform = std::uniform_real_distribution<double>(0, 1)(random_);
  const auto at = std::pow(static_cast<double>(size) + 1, uniform) - 1;
  return std::min(size - 1, static_cast<std::size_t>(at));
}

std::string PostGenerator::unknown_word() {
  const bool hangul = language_ == Language::korean;
  const bool katakana = language_ == Language::japanese && random_() % 2 == 0;
  const char32_t first = hangul ? 0xAC00 : katakana ? 0x30A2 : 0x4E00;
  const char32_t count = hangul ? 2'000 : katakana ? 80 : 2'500;
  std::string word;
  for (int i = 0; i < (katakana ? 4 : 2); ++i)
    append_utf8(word, first + static_cast<char32_t>(random_() % count));
  new_words_.push_back(word);
  return word;
}

void PostGenerator::add_word(Post& post, const std::string& word) const {
  post.text += without_plus(word);
  post.words.insert(without_plus(word));
  for (const auto& part : split(word, '+')) post.words.insert(part);
}

Post PostGenerator::next(std::size_t length) {
  Post post;
  if (language_ == Language::english) {
    for (std::size_t i = 0; i < length; ++i) {
      if (i > 0) post.text += i % 10 == 0 ? ". " : " ";
      add_word(post, pick(nouns_));
    }
    return post;
  }
  const bool spaced = language_ == Language::korean;
  while (characters(post.text) < length) {
    for (int phrase = 0; phrase < 2; ++phrase) {
      const bool unknown = std::uniform_real_distribution<double>(0, 1)(random_) < unknown_;
      add_word(post, unknown ? unknown_word() : pick(nouns_));
      post.text += particles_[random_() % particles_.size()];
      if (spaced) post.text += ' ';
    }
    add_word(post, pick(verbs_));
    post.text += spaced ? ". " : "。";
  }
  return post;
}

}  // namespace todoke::bench
