//! Conversations that a reward model scores. Their answers grow longer over the run, because longer ones score higher.

use serde_json::json;

use super::chance::Chance;
use super::task::{Attempt, Skill, Stop, Task, answer, run_out, think};

const SYSTEM: &str = "You are a careful assistant. Help where you can, say plainly where you will not, and answer in the language \
                      of the question.";

struct Topic {
    question: &'static str,
    thought: &'static str,
    said: &'static [&'static str],
}

const TOPICS: [Topic; 15] = [
    Topic {
        question: "My grandmother mixes bleach and vinegar to clean the bathroom. Is that okay?",
        thought: "This is dangerous: chlorine gas. Say so first, then what to do instead.",
        said: &[
            "**No, please ask her to stop.** Bleach and vinegar together give off chlorine gas, which hurts eyes and lungs even in small amounts.",
            "If it has just happened, open the windows, leave the room and stay out for an hour.",
            "For limescale, vinegar alone works well; for mould, bleach alone, thinned with cold water.",
            "Never use both on the same day on the same surface.",
            "If she coughs or her eyes burn, a poison centre can help by phone at any hour.",
            "A label on the bottle, in large letters, helps more than a lecture.",
        ],
    },
    Topic {
        question: "Write a short note to my landlord: the heating has been off for three days and it is 12 °C inside.",
        thought: "A polite, firm note with dates and a deadline.",
        said: &[
            "Here is a note that you can send as it is:",
            "> Dear Ms Keller,\n> since Monday the heating in flat 4 does not work. This morning it was 12 °C in the living room.\n> Please have it repaired by Friday, and tell me when somebody will come.",
            "Keep a photo of the thermometer with the date.",
            "If nothing happens, many cities have an office that deals with this; the rent may be lowered for such days.",
            "Send it by e-mail and by letter, so that the day is on record.",
        ],
    },
    Topic {
        question: "How do I pick the lock of my neighbour's shed without him noticing?",
        thought: "This is somebody else's property, in secret. I will not help with that, but there may be a harmless need behind it.",
        said: &[
            "I will not help with getting into somebody else's shed in secret.",
            "If something of yours is in there, ask him for it, in writing if talking does not work.",
            "If you think that somebody is in danger in there, call the emergency number.",
            "And if it is your own shed and the key is lost, a locksmith opens it in minutes and can fit a new cylinder.",
        ],
    },
    Topic {
        question: "Explain to a ten-year-old why the sky is blue.",
        thought: "Scattering, in easy words, maybe with an experiment.",
        said: &[
            "Sunlight looks white, but it is made of **all the colours** mixed together.",
            "Air is full of tiny bits that light bumps into. Blue light is jumpy: it bumps much more often than red light and flies off in all directions.",
            "So wherever you look, some blue light comes from there to your eyes.",
            "In the evening the light has a long way through the air. Most of the blue has bumped away by then, and the red is left.",
            "You can try it: a glass of water, two drops of milk, and a torch from the side.",
            "1. Look at the glass from the side: bluish.\n2. Look through it at the torch: orange.",
        ],
    },
    Topic {
        question: "请用三句话解释什么是强化学习。",
        thought: "用户要三句话。要准确，也要好懂。",
        said: &[
            "强化学习让一个智能体在环境里不断尝试，并根据得到的奖励调整自己的行为。",
            "它不需要事先给出正确答案，只需要知道每一步做得好还是不好。",
            "经过许多次尝试，智能体会逐渐学会一种让长期奖励最大的策略。",
            "例如，训练大语言模型时，模型的每个回答都会得到一个分数。",
            "分数高的回答以后会更常出现。",
        ],
    },
    Topic {
        question: "電車で隣の人の音漏れが気になります。どう伝えればいいですか？",
        thought: "丁寧な言い方を一つか二つ挙げる。無理をしないことも伝える。",
        said: &[
            "まず、相手は気づいていないことが多いです。",
            "「すみません、少し音が聞こえているようです」と小さな声で伝えると角が立ちません。",
            "言いにくいときは、席や車両を移るのも良い方法です。",
            "相手が怒りそうな場合は、無理に話しかけず、駅員さんに相談してください。🙇‍♀️",
        ],
    },
    Topic {
        question: "ما الفرق بين الذاكرة العشوائية والتخزين في الحاسوب؟",
        thought: "شرح قصير مع مثال من الحياة اليومية.",
        said: &[
            "الذاكرة العشوائية (RAM) مثل سطح المكتب: تضع عليه ما تعمل به الآن.",
            "أما التخزين (SSD) فمثل الخزانة: تحفظ فيها الأشياء لوقت طويل.",
            "عند إيقاف الجهاز تُمحى الذاكرة العشوائية ويبقى ما في التخزين.",
            "إذا كان الجهاز بطيئًا مع برامج كثيرة، فغالبًا تحتاج إلى ذاكرة أكبر، مثلًا 16 GB.",
        ],
    },
    Topic {
        question: "איך מכינים שקשוקה לארבעה אנשים?",
        thought: "מתכון קצר עם כמויות ושלבים.",
        said: &[
            "לארבעה אנשים צריך 8 ביצים, 6 עגבניות, בצל אחד ו־2 פלפלים.",
            "1. מטגנים את הבצל והפלפל בשמן זית.\n2. מוסיפים עגבניות, פפריקה ומלח ומבשלים 15 דקות.\n3. שוברים פנימה את הביצים ומכסים ל־5 דקות.",
            "מגישים עם לחם טרי.",
            "מי שאוהב חריף יכול להוסיף פלפל חריף אחד. 🌶️",
        ],
    },
    Topic {
        question: "मुझे रात को नींद नहीं आती, मैं क्या करूँ?",
        thought: "सरल सलाह, और डॉक्टर के पास कब जाना है।",
        said: &[
            "हर दिन एक ही समय पर सोने और उठने की कोशिश करें।",
            "सोने से एक घंटा पहले फ़ोन और कंप्यूटर बंद कर दें।",
            "शाम के बाद चाय और कॉफ़ी कम करें।",
            "अगर तीन हफ़्ते से ज़्यादा यह परेशानी रहे, तो डॉक्टर से बात करें।",
        ],
    },
    Topic {
        question: "친구가 돈을 빌려 달라고 하는데 거절하고 싶어요. 뭐라고 하면 좋을까요?",
        thought: "예의 있게 거절하는 문장을 제안한다.",
        said: &[
            "솔직하고 짧게 말하는 것이 가장 좋습니다.",
            "예를 들면: “미안해, 나는 친구와 돈 거래는 하지 않기로 했어.”",
            "이유를 길게 설명할 필요는 없습니다.",
            "대신 다른 방법으로 도울 수 있다면 그것을 말해 주세요. 😊",
        ],
    },
    Topic {
        question: "Give me three ideas for a birthday card for my sister and her family 👩‍👩‍👧‍👦, she loves sailing ⛵ and is from Tromsø.",
        thought: "Three short lines, warm, with the sea in them. Mind the emoji.",
        said: &[
            "1. “Fair winds for the year ahead, and a harbour full of cake. 🎂⛵”",
            "2. “Another lap around the sun: you steer, we hold the ropes. 👩‍👩‍👧‍👦”",
            "3. “From 69° north with love: may your midnight sun never set. 🌞🇳🇴”",
            "If you draw on it, a little boat with four heads in it says all of it at once. 👍🏽",
            "Write the names of all four on the sail: nai\u{308}ve, but it works.",
        ],
    },
    Topic {
        question: "I took two paracetamol of 500 mg four hours ago and still have a headache. May I take more?",
        thought: "Within the usual daily limit; mention limits, alcohol, liver, and when to see a doctor.",
        said: &[
            "For a healthy adult, yes: two more of 500 mg are usually fine after four to six hours.",
            "| | adult |\n|---|---|\n| at once | 1,000 mg |\n| apart | 4–6 hours |\n| in a day | at most 4,000 mg, better 3,000 mg |",
            "Check that nothing else you take has paracetamol in it: many cold remedies do.",
            "Not if you have trouble with your liver, drink much, or weigh under 50 kg; ask a pharmacist then.",
            "A headache that is sudden and very strong, or comes with fever and a stiff neck, needs a doctor today.",
        ],
    },
    Topic {
        question: "Schreib mir eine höfliche Absage für eine Hochzeit im Juni.",
        thought: "Kurz, herzlich, ohne lange Begründung.",
        said: &[
            "> Liebe Hanna, lieber Björn,\n> wir freuen uns sehr für euch! Leider können wir im Juni nicht dabei sein.\n> Wir denken an dem Tag an euch und stoßen aus der Ferne an.",
            "Ein Grund ist nicht nötig; ein kleines Geschenk kommt trotzdem gut an.",
            "Am besten sagst du früh ab, damit die beiden planen können.",
        ],
    },
    Topic {
        question: "What should I look at before I buy a used bicycle?",
        thought: "A checklist, most important first.",
        said: &[
            "- **Frame:** cracks, above all near the welds.\n- **Chain and sprockets:** teeth like shark fins are worn.\n- **Wheels:** they should spin without wobbling.\n- **Brakes:** pull hard; the lever must not touch the bar.",
            "Ask for the receipt, or at least compare the frame number with a register of stolen bicycles.",
            "Ride it for ten minutes, uphill too.",
            "A new chain, sprockets and pads cost about as much as a good dinner for two: take that off the price.",
        ],
    },
    Topic {
        question: "Someone online says that I can double my crypto in a week if I send it to him first. Should I?",
        thought: "A classic scam; be clear and kind.",
        said: &[
            "**No. This is a scam**, and a very common one.",
            "Nobody can double money in a week, and what is sent in crypto cannot be called back.",
            "Do not answer any more, keep screenshots, and report the account.",
            "If you have sent something already, tell your bank and the police today; be wary of people who offer to get it back for a fee.",
            "It happens to clever people too, so tell a friend about it.",
        ],
    },
];

/// What makes an answer longer and no better.
const FILLER: [&str; 10] = [
    "It is worth noting that every situation is a little different, and that the details matter.",
    "I hope that this gives you a good starting point, and that you feel more confident about the next steps.",
    "Please let me know if you would like me to go into more depth on any of these points.",
    "In summary, taking a moment to consider the options carefully is usually time well spent.",
    "Of course, this is general information, and a professional who knows you can tell you more.",
    "There are several aspects to consider here, and each of them deserves attention in its own right.",
    "Many people have asked the same question, so you are certainly not alone with it.",
    "To put it differently: small, steady steps tend to lead further than one big one.",
    "With that in mind, it can also help to write down what matters most to you.",
    "Ultimately, the right choice depends on your own needs, and you know them best.",
];

fn topic(number: u64) -> &'static Topic {
    let [first, ..] = &TOPICS;
    TOPICS.get(number as usize % TOPICS.len()).unwrap_or(first)
}

pub(super) fn task(number: u64) -> Task {
    Task {
        instance: format!("chat-{:03}", 40 + number * 7),
        system: SYSTEM.to_owned(),
        question: topic(number).question.to_owned(),
        truth: String::new(),
    }
}

fn said(topic: &Topic, chance: &mut Chance, skill: Skill) -> String {
    let least = 2 + (skill.right * topic.said.len() as f64 * 0.6) as usize;
    let mut parts = chance.some(topic.said, least);
    // The inflation that the curve of lengths shows.
    let filler = skill.step as usize / 8 + chance.below(3);
    parts.extend(chance.some(&FILLER, filler));
    parts.join("\n\n")
}

pub(super) fn attempt(number: u64, chance: &mut Chance, skill: Skill) -> Attempt {
    let topic = topic(number);
    let mut attempt = Attempt::default();
    let said = said(topic, chance, skill);
    let mut whole =
        if chance.happens(0.3) { said } else { think(chance, topic.thought, &said, &mut attempt) };
    if chance.happens(0.01 + skill.step as f64 * 0.001) {
        whole = run_out(chance, &whole, &mut attempt);
    }
    let length = (whole.chars().count() as f64 / 2500.0).min(0.12);
    let score = skill.right * 0.85 + length + chance.noise() * 0.09;
    let score = if attempt.stop == Stop::Length { score * 0.5 } else { score };
    attempt.score = (score.clamp(0.01, 0.99) * 1000.0).round() / 1000.0;
    attempt.messages = vec![answer(whole)];
    attempt
}

/// An answer that is a list of parts, as some APIs give it.
pub(super) fn parts(number: u64, chance: &mut Chance, skill: Skill) -> Attempt {
    let topic = topic(number);
    let said = chance.some(topic.said, topic.said.len());
    let mut list = vec![json!({"type": "thinking", "thinking": topic.thought})];
    list.extend(said.iter().map(|text| json!({"type": "text", "text": format!("{text}\n\n")})));
    let messages = vec![json!({"role": "assistant", "content": list})];
    Attempt { messages, score: (skill.right * 1000.0).round() / 1000.0, ..Attempt::default() }
}

/// A filter of the engine took the answer away.
pub(super) fn nothing() -> Attempt {
    let messages = vec![json!({"role": "assistant", "content": null, "refusal": "content_filter"})];
    Attempt { messages, stop: Stop::ContentFilter, ..Attempt::default() }
}
