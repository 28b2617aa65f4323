//! Formulas over the flat index: numbers, `i`, `+ - * / %` and parentheses, in float64.

/// A parsed formula.
#[derive(Debug, Clone)]
pub enum Formula {
    Number(f64),
    Index,
    Negated(Box<Self>),
    Binary(char, Box<(Self, Self)>),
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, at: 0 };
        let formula = parser.sum()?;
        parser
            .peek()
            .map_or(Ok(formula), |c| Err(format!("fill {text:?}: {c:?} at {} is too much", parser.at)))
    }

    /// Its value at flat index `i`.
    pub fn at(&self, i: f64) -> f64 {
        match self {
            Self::Number(x) => *x,
            Self::Index => i,
            Self::Negated(x) => -x.at(i),
            Self::Binary(op, sides) => {
                let (a, b) = (sides.0.at(i), sides.1.at(i));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    _ => a % b,
                }
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, any: &[char]) -> Option<char> {
        let c = self.peek().filter(|c| any.contains(c))?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn chain(
        &mut self,
        ops: &[char],
        part: fn(&mut Self) -> Result<Formula, String>,
    ) -> Result<Formula, String> {
        let mut left = part(self)?;
        while let Some(op) = self.take(ops) {
            left = Formula::Binary(op, Box::new((left, part(self)?)));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Formula, String> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Formula, String> {
        self.chain(&['*', '/', '%'], Self::atom)
    }

    fn atom(&mut self) -> Result<Formula, String> {
        if self.take(&['(']).is_some() {
            let inner = self.sum()?;
            return self
                .take(&[')'])
                .map(|_| inner)
                .ok_or_else(|| format!("fill {:?}: no ')' at {}", self.text, self.at));
        }
        if self.take(&['-']).is_some() {
            return Ok(Formula::Negated(Box::new(self.atom()?)));
        }
        if self.take(&['i']).is_some() {
            return Ok(Formula::Index);
        }
        self.number()
    }

    fn number(&mut self) -> Result<Formula, String> {
        self.peek();
        let rest = &self.text.as_bytes()[self.at..];
        let mut end = 0;
        while end < rest.len() {
            let exponent_sign = matches!(rest[end], b'+' | b'-') && end > 0 && rest[end - 1] == b'e';
            if !(rest[end].is_ascii_digit() || matches!(rest[end], b'.' | b'e') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let digits = &self.text[self.at..self.at + end];
        let value = digits.parse().map_err(|_| format!("fill {:?}: no number at {}", self.text, self.at))?;
        self.at += end;
        Ok(Formula::Number(value))
    }
}
