// Keeps the queue page up to date and takes the visitor in.
//
// Asks /.sluice/ROOM/status when told to, shows what it says, and loads the page anew once the
// answer has set the pass. What is due is kept as a moment, not as a running timer, so that sleep,
// a frozen tab and a page that comes back from the history all ask at once when they wake.
//
// Without a ticket (full, rejected, closed on arrival) there is nothing to ask for: when due, the
// page itself is loaded again.
(() => {
	'use strict';
	const SLOWEST = 60, PATIENCE = 15e3, RELOAD_GAP = 30e3, SAY_GAP = 60e3;
	const body = document.body, $ = id => document.getElementById(id);
	const lang = document.documentElement.lang, words = $('wait').dataset;
	const hasTicket = /waiting|next|prequeue/.test(body.dataset.state);
	const url = '/.sluice/' + body.dataset.room.trim() + '/status';
	let state = body.dataset.state.trim(), pollAfter = +body.dataset.poll || 20;
	let due, failures = 0, busy = false, leaving = false, said = 0;
	let firstAhead = 0, firstLeft = 1 - $('progress').value / 1000;

	const number = n => n == null ? '–' : n.toLocaleString(lang);

	// The same words as page.c finds for the same seconds.
	function wait(eta) {
		if (!eta)
			return words.unknown;
		if (eta.high < 60)
			return words.soon;
		const [pattern, unit, one] = eta.high <= 5400 ? [words.minutes, 60, 1]
			: eta.high <= 129600 ? [words.hours, 1800, 2] : [words.days, 86400, 1];
		const low = Math.max(1, Math.floor(eta.low / unit));
		const high = Math.max(low + 1, Math.ceil(eta.high / unit));
		return pattern.replace('#', low / one).replace('#', high / one);
	}

	function schedule(seconds) {
		due = Date.now() + seconds * 1000 * (1 + Math.random() / 10);
	}

	function say(always) {
		if (!always && Date.now() - said < SAY_GAP)
			return;
		said = Date.now();
		const head = document.querySelector('[data-for~=' + state + '] h1');
		$('live').textContent = head.textContent + (state == 'waiting' ? '. ' +
			$('ahead').parentNode.textContent + '. ' + $('wait').parentNode.textContent : '');
	}

	function title() {
		const head = document.querySelector('[data-for~=' + state + '] h1').textContent;
		const place = $('place').textContent.trim();
		document.title = state == 'waiting' ? place + ' · ' + head : head;
	}

	function show(status) {
		const changed = status.state != state;
		body.dataset.state = state = status.state;
		$('place').textContent = number(status.position);
		$('ahead').textContent = number(status.ahead);
		$('wait').textContent = wait(status.eta);
		$('message').textContent = status.message || '';
		$('message').parentNode.hidden = !status.message;
		firstAhead = firstAhead || status.ahead;
		if (firstAhead)
			$('progress').value = 1000 - 1000 * firstLeft * Math.min(1, status.ahead / firstAhead);
		title();
		say(changed);
	}

	function online(yes) {
		failures = yes ? 0 : failures + 1;
		$('offline').hidden = yes;
		body.classList.toggle('off', !yes);
		if (yes)
			$('time').textContent = new Date().toLocaleTimeString(lang);
		else
			schedule(Math.min(SLOWEST, Math.max(pollAfter, 2 ** Math.min(failures, 6))));
	}

	// A page that comes back without a ticket again and again has a browser without cookies: say
	// so instead of turning round for ever.
	function reload(once) {
		let last = 0;
		try {
			last = +sessionStorage.sluice;
			sessionStorage.sluice = Date.now();
		} catch (e) {
			once = once && navigator.cookieEnabled;
		}
		if (once && Date.now() - last < RELOAD_GAP || once === false) {
			$('cookies').hidden = false;
			schedule(SLOWEST);
			return;
		}
		leaving = true;
		location.reload();
	}

	async function ask() {
		const stop = new AbortController, timer = setTimeout(() => stop.abort(), PATIENCE);
		try {
			const answer = await fetch(url, {cache: 'no-store', signal: stop.signal,
				headers: {Accept: 'application/json'}});
			if (answer.status == 401 || answer.status == 404) {
				online(true);
				reload(true);
			} else if (answer.ok || answer.status == 410) {
				const status = await answer.json();
				online(true);
				pollAfter = status.poll_after || pollAfter;
				schedule(pollAfter);
				if (status.state == 'admitted')
					reload(true);
				else
					show(status);
			} else {
				online(false);
			}
		} catch (e) {
			online(false);
		}
		clearTimeout(timer);
	}

	// Every second, and whenever the page wakes. A moment that lies too far ahead means that the
	// clock was set back.
	async function tick() {
		const left = due - Date.now();
		if (busy || leaving || state == 'expired' || left > 0 && left < 2e3 * SLOWEST)
			return;
		busy = true;
		if (hasTicket)
			await ask();
		else
			reload();
		busy = false;
	}

	function wake(event) {
		if (event.type == 'pageshow')
			leaving = false;
		if (failures && event.type == 'online')
			due = 0;
		tick();
	}

	$('host').textContent = location.host;
	$('again').onclick = event => {
		event.preventDefault();
		reload();
	};
	schedule(pollAfter);
	online(true);
	setInterval(tick, 1000);
	for (const name of ['online', 'pageshow', 'focus'])
		addEventListener(name, wake);
	document.addEventListener('visibilitychange', wake);
})();
